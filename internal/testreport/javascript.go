package testreport

import (
	_ "embed" // the drivers
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
)

//go:embed drivers/control.cjs
var nodeControl string

//go:embed drivers/node.mjs
var nodeReporter string

//go:embed drivers/mocha.cjs
var mochaReporter string

//go:embed drivers/jest.cjs
var jestRunner string

//go:embed drivers/vitest.mjs
var vitestReporter string

//go:embed drivers/setup.mjs
var vitestSetup string

// titles is what stands between a file, its groups of tests and a test.
const titles = " > "

// program is the name of the program that words run: a program of npm may be run by
// its path, or by node.
func program(words []string) string {
	name := path.Base(words[0])
	if name != "node" {
		return name
	}
	for _, w := range words[1:] {
		switch {
		case strings.HasPrefix(w, "-"):
			continue
		case strings.Contains(w, "node_modules/"):
			return strings.TrimSuffix(strings.TrimSuffix(path.Base(w), ".mjs"), ".js")
		}
		break
	}
	return name
}

// watches says whether a runner is asked to wait for changes.
func watches(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return w == "watch" || strings.HasPrefix(w, "--watch") && w != "--watchAll=false" })
}

// fullTitles are names without the file, joined as the runner itself joins them, for
// a pattern that selects them.
func fullTitles(names []string) string {
	patterns := []string{}
	for _, name := range names {
		if _, rest, found := strings.Cut(name, titles); found {
			patterns = append(patterns, regexp.QuoteMeta(strings.ReplaceAll(rest, titles, " ")))
		}
	}
	if len(patterns) == 0 {
		return ""
	}
	return "^(" + strings.Join(patterns, "|") + ")$"
}

// nodeTest is node --test. A reporter of ours is in the process that starts one for
// each test file; a module of ours is loaded into those.
type nodeTest struct{}

func (nodeTest) name() string { return "node --test" }

func (nodeTest) matches(words []string) bool {
	if path.Base(words[0]) != "node" || !slices.Contains(words, "--test") || watches(words) {
		return false
	}
	return !slices.ContainsFunc(words, func(w string) bool {
		// Tests in the process of the reporter; a reporter without a file of its own.
		return strings.HasSuffix(w, "test-isolation=none") || strings.HasPrefix(w, "--test-reporter") || strings.HasPrefix(w, "--test-only")
	})
}

func (nodeTest) command(c call, dir string, only []string) (string, bool) {
	line := c.line
	if len(only) > 0 {
		if c.script { // NODE_OPTIONS cannot have a pattern
			return "", false
		}
		node := c.words[0]
		var patterns []string
		for _, name := range only {
			parts := strings.Split(name, titles)
			if len(parts) < 2 {
				return "", false
			}
			patterns = append(patterns, "--test-name-pattern=^"+regexp.QuoteMeta(parts[len(parts)-1])+"$")
		}
		line = c.line[:node.end] + " " + quoteAll(patterns) + c.line[node.end:]
	}
	files := []driverFile{{"control.cjs", nodeControl}, {"reporter.mjs", nodeReporter}}
	// The module comes last: it removes itself and what follows, for programs that
	// tests start.
	options := "--require=" + dir + "/control.cjs --test-reporter=" + dir + "/reporter.mjs --test-reporter-destination=" + dir +
		"/node.jsonl --test-reporter=spec --test-reporter-destination=stdout"
	return shellScript(dir, files, `export NODE_OPTIONS="${NODE_OPTIONS:+$NODE_OPTIONS }"`+quote(options)+"\n"+line), !strings.ContainsAny(dir, " \"\\")
}

func (nodeTest) read(_ call, r run) Report {
	b := newBuilder()
	r.readDriver(b)
	return b.report()
}

// mocha reports to a reporter of ours, in the process of the tests.
type mocha struct{}

func (mocha) name() string { return "mocha" }

func (mocha) matches(words []string) bool {
	name := program(words)
	return (name == "mocha" || name == "_mocha") && !watches(words) && !slices.Contains(words, "--parallel") && !slices.Contains(words, "-p")
}

func (mocha) command(c call, dir string, only []string) (string, bool) {
	arguments := []string{"--reporter", dir + "/mocha.cjs"}
	if len(only) > 0 {
		pattern := fullTitles(only)
		if pattern == "" {
			return "", false
		}
		arguments = append(arguments, "--grep", pattern)
	}
	files := []driverFile{{"control.cjs", nodeControl}, {"mocha.cjs", mochaReporter}}
	return shellScript(dir, files, c.with(arguments...)), true
}

func (mocha) read(_ call, r run) Report {
	b := newBuilder()
	r.readDriver(b)
	return b.report()
}

// jest writes its results at the end, as JSON. The controls run in its processes.
type jest struct{}

func (jest) name() string { return "jest" }

func (jest) matches(words []string) bool {
	return program(words) == "jest" && !watches(words) && !slices.ContainsFunc(words, func(w string) bool {
		return w == "--json" || strings.HasPrefix(w, "--outputFile") || strings.HasPrefix(w, "--testRunner") || w == "--listTests"
	})
}

const (
	jestReport = "results.json"
	rootFile   = "root" // where the runner was started
)

func (jest) command(c call, dir string, only []string) (string, bool) {
	arguments := []string{"--json", "--outputFile=" + dir + "/" + jestReport, "--testRunner=" + dir + "/jest.cjs"}
	if len(only) > 0 {
		pattern := fullTitles(only)
		if pattern == "" {
			return "", false
		}
		arguments = append(arguments, "--testNamePattern="+pattern)
	}
	return shellScript(dir, []driverFile{{"jest.cjs", jestRunner}}, "pwd >"+quote(dir+"/"+rootFile)+"\n"+c.with(arguments...)), true
}

func (jest) read(_ call, r run) Report { return r.readWithControls() }

// readWithControls reads results, and what our drivers know about them.
func (r run) readWithControls() Report {
	b := newBuilder()
	r.readDriverFiles(b)
	r.readJest(b)
	b.needControl()
	return b.report()
}

// vitest writes its results as jest does. The controls run in its processes.
type vitest struct{}

func (vitest) name() string { return "vitest" }

func (vitest) matches(words []string) bool {
	if program(words) != "vitest" || watches(words) || slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "--reporter") }) {
		return false
	}
	return len(words) == 1 || !slices.Contains([]string{"bench", "dev", "list", "init", "typecheck", "related"}, words[1])
}

func (vitest) command(c call, dir string, only []string) (string, bool) {
	arguments := []string{"--reporter=default", "--reporter=json", "--reporter=" + dir + "/vitest.mjs", "--outputFile.json=" + dir + "/" + jestReport}
	if !slices.ContainsFunc(c.words, func(w word) bool { return w.text == "run" || w.text == "--run" }) {
		arguments = append(arguments, "--run")
	}
	if len(only) > 0 {
		pattern := fullTitles(only)
		if pattern == "" {
			return "", false
		}
		arguments = append(arguments, "--testNamePattern="+pattern)
	}
	files := []driverFile{{"vitest.mjs", vitestReporter}, {"setup.mjs", vitestSetup}}
	return shellScript(dir, files, "pwd >"+quote(dir+"/"+rootFile)+"\n"+c.with(arguments...)), true
}

func (vitest) read(_ call, r run) Report { return r.readWithControls() }

type jestResults struct {
	Total       *int `json:"numTotalTests"`
	Passed      int  `json:"numPassedTests"`
	Failed      int  `json:"numFailedTests"`
	Pending     int  `json:"numPendingTests"`
	Todo        int  `json:"numTodoTests"`
	Success     bool `json:"success"`
	Interrupted bool `json:"wasInterrupted"`
	Files       []struct {
		Name    string `json:"name"`
		Status  string `json:"status"`
		Message string `json:"message"`
		Tests   []struct {
			Groups   []string `json:"ancestorTitles"`
			Title    string   `json:"title"`
			Status   string   `json:"status"`
			Messages []string `json:"failureMessages"`
		} `json:"assertionResults"`
	} `json:"testResults"`
}

// readJest reads what jest --json writes, and the JSON reporter of vitest.
func (r run) readJest(b *builder) {
	var results jestResults
	data, err := readFile(r.files, jestReport, maxBytes)
	if err == nil {
		err = json.Unmarshal(data, &results)
	}
	if err != nil || results.Total == nil {
		b.doubt("the runner wrote no results: %v", err)
		return
	}
	root, _ := readFile(r.files, rootFile, maxProject) // without it names are absolute
	prefix := strings.TrimRight(string(root), "\n") + "/"
	counted := map[Status]int{}
	for _, file := range results.Files {
		name := strings.TrimPrefix(file.Name, prefix)
		broken := file.Status == string(Failed)
		for _, test := range file.Tests {
			names := append(slices.Clone(test.Groups), test.Title)
			c := Case{Name: jestName(append([]string{name}, names...)), File: name,
				Status: jestStatus(test.Status), Message: strings.Join(test.Messages, "\n")}
			counted[c.Status]++
			broken = broken && c.Status != Failed
			if c.Status == Passed && b.expected[jestName(append([]string{file.Name}, names...))] {
				c.Status, c.Message = Skipped, expectedFailure
			}
			b.add(c)
		}
		if broken { // it could not be loaded, or failed outside a test
			b.add(Case{Name: name, File: name, Status: Failed, Message: file.Message})
		}
	}
	results.check(b, r.exit, counted)
}

// check looks whether the numbers agree with the tests that are named.
func (results jestResults) check(b *builder, exit int, counted map[Status]int) {
	switch {
	case results.Interrupted:
		b.doubt("the run was interrupted")
	case counted[Passed] != results.Passed || counted[Failed] != results.Failed || counted[Skipped] != results.Pending+results.Todo ||
		*results.Total != results.Passed+results.Failed+results.Pending+results.Todo:
		b.doubt("the runner counts other numbers of tests than it names: some did not end")
	case results.Success && exit != 0:
		b.doubt("the results say success, the exit code does not")
	}
}

// jestName is the name of a test, from its file, its groups and its title. Vitest has a
// group without a title around a file.
func jestName(parts []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return part == "" }), titles)
}

func jestStatus(status string) Status {
	switch status {
	case "passed":
		return Passed
	case "pending", "todo", "skipped", "disabled", "focused":
		return Skipped
	}
	return Failed
}
