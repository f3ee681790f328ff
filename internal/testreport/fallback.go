package testreport

import (
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// testFailures are how test runners name a test that failed.
var testFailures = []*lazyregexp.Regexp{
	lazyregexp.New(`^\s*--- FAIL: (\S+)`),                                                        // go
	lazyregexp.New(`^FAIL\s+(\S+) \[(?:build|setup) failed\]`),                                   // go
	lazyregexp.New(`^(?:FAILED|ERROR) ([^\s]+::[^\s]+|\S+\.py)\b`),                               // pytest
	lazyregexp.New(`^(?:FAIL|ERROR): (\S+ \([^)]*\))`),                                           // unittest
	lazyregexp.New(`^\s*● (.+ › .+)$`),                                                           // jest
	lazyregexp.New(`^\s*(?:✕|×) (.+?)(?: \(\d+ ?ms\)| \d+ms)?$`),                                 // jest, vitest
	lazyregexp.New(`^\s*not ok \d+ -? ?(.+?)(?: # .*)?$`),                                        // TAP, node
	lazyregexp.New(`^\s*✖ (.+?) \(\d[\d.]*ms\)$`),                                                // node
	lazyregexp.New(`^\[ERROR\]\s+(\S+\.\S+):\d+`),                                                // maven
	lazyregexp.New(`^\[ERROR\]\s+(\S+\.\S+) -- Time elapsed.*<<<`),                               // maven
	lazyregexp.New(`^(\S+(?: > .+)+) FAILED$`),                                                   // gradle
	lazyregexp.New(`^test (\S+) \.\.\. FAILED$`),                                                 // cargo
	lazyregexp.New(`^rspec (\S+)`),                                                               // rspec
	lazyregexp.New(`^\d+\) ([\w\\]+::\w+)`),                                                      // phpunit
	lazyregexp.New(`^\s*\d+\) test (.+ \(.+\))$`),                                                // exunit
	lazyregexp.New(`^\s*Failed (\S+\.\S+)(?: \[.*\])?$`),                                         // dotnet
	lazyregexp.New(`^([\w:]+#test_\S+)(?: \[.*\])?:?$`),                                          // minitest
	lazyregexp.New(`^\(fail\) (.+?)(?: \[[\d.]+ms\])?$`),                                         // bun
	lazyregexp.New(`^(.+) \.\.\. FAILED \(\d+m?s\)$`),                                            // deno
	lazyregexp.New(`^\s*\d+ - (\S+) \((?:Failed|Timeout|SEGFAULT|Subprocess aborted|Not Run)\)`), // ctest
	lazyregexp.New(`^\s*FAILED\s+(\S+ > .+)$`),                                                   // pest
}

// mochaSummary is in the output of mocha, which numbers the tests that failed as
// many a text is numbered.
var (
	mochaSummary = lazyregexp.New(`^\s+\d+ failing\s*$`)
	mochaFailure = lazyregexp.New(`^\s+\d+\) (.+?):?$`)
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
