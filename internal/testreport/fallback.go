package testreport

import (
	"regexp"
	"slices"
	"strings"
)

// testFailures are how test runners name a test that failed.
var testFailures = []*regexp.Regexp{
	regexp.MustCompile(`^\s*--- FAIL: (\S+)`),                                                        // go
	regexp.MustCompile(`^FAIL\s+(\S+) \[(?:build|setup) failed\]`),                                   // go
	regexp.MustCompile(`^(?:FAILED|ERROR) ([^\s]+::[^\s]+|\S+\.py)\b`),                               // pytest
	regexp.MustCompile(`^(?:FAIL|ERROR): (\S+ \([^)]*\))`),                                           // unittest
	regexp.MustCompile(`^\s*● (.+ › .+)$`),                                                           // jest
	regexp.MustCompile(`^\s*(?:✕|×) (.+?)(?: \(\d+ ?ms\)| \d+ms)?$`),                                 // jest, vitest
	regexp.MustCompile(`^\s*not ok \d+ -? ?(.+?)(?: # .*)?$`),                                        // TAP, node
	regexp.MustCompile(`^\s*✖ (.+?) \(\d[\d.]*ms\)$`),                                                // node
	regexp.MustCompile(`^\[ERROR\]\s+(\S+\.\S+):\d+`),                                                // maven
	regexp.MustCompile(`^\[ERROR\]\s+(\S+\.\S+) -- Time elapsed.*<<<`),                               // maven
	regexp.MustCompile(`^(\S+(?: > .+)+) FAILED$`),                                                   // gradle
	regexp.MustCompile(`^test (\S+) \.\.\. FAILED$`),                                                 // cargo
	regexp.MustCompile(`^rspec (\S+)`),                                                               // rspec
	regexp.MustCompile(`^\d+\) ([\w\\]+::\w+)`),                                                      // phpunit
	regexp.MustCompile(`^\s*\d+\) test (.+ \(.+\))$`),                                                // exunit
	regexp.MustCompile(`^\s*Failed (\S+\.\S+)(?: \[.*\])?$`),                                         // dotnet
	regexp.MustCompile(`^([\w:]+#test_\S+)(?: \[.*\])?:?$`),                                          // minitest
	regexp.MustCompile(`^\(fail\) (.+?)(?: \[[\d.]+ms\])?$`),                                         // bun
	regexp.MustCompile(`^(.+) \.\.\. FAILED \(\d+m?s\)$`),                                            // deno
	regexp.MustCompile(`^\s*\d+ - (\S+) \((?:Failed|Timeout|SEGFAULT|Subprocess aborted|Not Run)\)`), // ctest
	regexp.MustCompile(`^\s*FAILED\s+(\S+ > .+)$`),                                                   // pest
}

// mochaSummary is in the output of mocha, which numbers the tests that failed as
// many a text is numbered.
var (
	mochaSummary = regexp.MustCompile(`^\s+\d+ failing\s*$`)
	mochaFailure = regexp.MustCompile(`^\s+\d+\) (.+?):?$`)
)

// FailingTests names the tests that the lines of a test run's output say failed, each
// once, in order. It is for runners that [Find] does not know: a test can print what
// it likes, so that no failure is named does not mean that the tests passed.
func FailingTests(lines []string) []string {
	failing := []string{}
	seen := map[string]bool{}
	forms := testFailures
	if slices.ContainsFunc(lines, mochaSummary.MatchString) {
		forms = append(slices.Clone(forms), mochaFailure)
	}
	for _, line := range lines {
		for _, form := range forms {
			found := form.FindStringSubmatch(line)
			if found == nil {
				continue
			}
			if name := strings.TrimSpace(found[1]); !seen[name] {
				seen[name] = true
				failing = append(failing, name)
			}
			break
		}
	}
	return failing
}
