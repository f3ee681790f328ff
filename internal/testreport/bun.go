package testreport

import (
	_ "embed" // the driver
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

//go:embed drivers/bun.mjs
var bunSetup string

// bun and deno write XML after that of JUnit. Errors outside of tests are not in it:
// those are taken from what is printed, where text of others can only add failures.
type bun struct{}

func (bun) name() string { return "bun test" }

func (bun) matches(words []string) bool {
	return path.Base(words[0]) == "bun" && len(words) > 1 && words[1] == "test" && !watches(words) &&
		!slices.ContainsFunc(words, func(w string) bool { return w == "--" || w == "--dots" || strings.HasPrefix(w, "--reporter") })
}

func (bun) command(c call, dir string, only []string) (string, bool) {
	arguments := []string{"--preload=" + dir + "/bun.mjs", "--reporter=junit", "--reporter-outfile=" + dir + "/bun.xml"}
	if len(only) > 0 {
		pattern := fullTitles(only)
		if pattern == "" {
			return "", false
		}
		arguments = append(arguments, "--test-name-pattern="+pattern)
	}
	return shellScript(dir, []driverFile{{"bun.mjs", bunSetup}}, c.with(arguments...)), true
}

var bunErrors = lazyregexp.New(`(?m)^ \d+ pass\n(?: \d+ (?:skip|todo|filtered out|fail)\n)* \d+ errors?$`)

func (bun) read(_ call, r run) Report {
	b := newBuilder()
	r.readDriverFiles(b)
	r.readXML(b, "bun", func(path []*element) Case {
		e, names := path[len(path)-1], []string{}
		for _, around := range path {
			if around.name != "testsuites" {
				names = append(names, around.attribute("name"))
			}
		}
		return Case{Name: strings.Join(names, titles), File: e.attribute("file")}
	})
	if bunErrors.Match(withoutColors(r.output)) {
		b.add(Case{Name: "errors outside of tests", Status: Failed, Message: "bun reports errors between tests: see its output"})
	}
	b.needControl()
	return b.report()
}

// deno collects the results itself, outside of what runs the tests, and a test cannot
// end it.
type deno struct{}

func (deno) name() string { return "deno test" }

func (deno) matches(words []string) bool {
	return path.Base(words[0]) == "deno" && len(words) > 1 && words[1] == "test" && !watches(words) &&
		!slices.ContainsFunc(words, func(w string) bool {
			return w == "--" || w == "--no-run" || strings.HasPrefix(w, "--junit-path") || strings.HasPrefix(w, "--reporter")
		})
}

func (deno) command(c call, dir string, only []string) (string, bool) {
	arguments := []string{"--junit-path=" + dir + "/deno.xml"}
	if len(only) > 0 {
		patterns := []string{}
		for _, name := range only {
			_, rest, found := strings.Cut(name, titles)
			if !found {
				return "", false
			}
			test, _, _ := strings.Cut(rest, titles) // steps run with their test
			patterns = append(patterns, regexp.QuoteMeta(test))
		}
		arguments = append(arguments, "--filter=/^("+strings.Join(patterns, "|")+")$/")
	}
	return shellScript(dir, nil, c.with(arguments...)), true
}

var denoErrors = lazyregexp.New(`(?m)^(?:\./)?(\S.*) \(uncaught error\)$`)

func (deno) read(_ call, r run) Report {
	b := newBuilder()
	r.readXML(b, "deno", func(path []*element) Case {
		e := path[len(path)-1]
		file := strings.TrimPrefix(e.attribute("classname"), "./")
		return Case{Name: file + titles + e.attribute("name"), File: file}
	})
	broken := map[string]bool{}
	for _, found := range denoErrors.FindAllSubmatch(withoutColors(r.output), MaxCases) {
		if file := string(found[1]); !broken[file] {
			broken[file] = true
			b.add(Case{Name: file, File: file, Status: Failed, Message: "an error outside of tests: see the output of deno"})
		}
	}
	return b.report()
}

var colors = lazyregexp.New(`\x1b\[[0-9;]*m`)

func withoutColors(output []byte) []byte { return colors.ReplaceAll(output, nil) }
