package testreport

import (
	"bufio"
	"bytes"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// cargo is read from its output: its JSON is not stable. libtest prints what tests
// print only after all results, but code can write to standard output past libtest.
// So a result counts only between "running N tests" and the empty line before the
// summary, and N, the names and the summary have to agree.
type cargo struct{}

func (cargo) name() string { return "cargo test" }

func (cargo) matches(words []string) bool {
	if path.Base(words[0]) != "cargo" || len(words) < 2 {
		return false
	}
	if strings.HasPrefix(words[1], "+") {
		words = words[1:]
	}
	if len(words) < 2 || words[1] != "test" && words[1] != "t" {
		return false
	}
	// What changes the form of the output, and arguments for libtest.
	return !slices.ContainsFunc(words, func(w string) bool {
		return w == "--" || w == "-q" || w == "--quiet" || w == "--no-run" || strings.HasPrefix(w, "--message-format")
	})
}

func (cargo) command(c call, dir string, only []string) (string, bool) {
	arguments := []string{"--no-fail-fast", "--color=never"}
	if len(only) > 0 {
		arguments = append(arguments, "--", "--exact")
		for _, name := range only {
			_, test, found := strings.Cut(name, " ")
			if !found {
				return "", false
			}
			arguments = append(arguments, test)
		}
	}
	// The names of the test programs are on standard error.
	return shellScript(dir, nil, c.with(arguments...)+" 2>&1"), true
}

var (
	cargoTarget  = lazyregexp.New(`^     Running (?:unittests )?(\S+) \(.*?([^/]+)-[0-9a-f]{16}(?:\.exe)?\)$`)
	cargoDoc     = lazyregexp.New(`^   Doc-tests (\S+)$`)
	cargoRunning = lazyregexp.New(`^running (\d+) tests?$`)
	cargoTest    = lazyregexp.New(`^test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored(?:, .*)?)$`)
	cargoResult  = lazyregexp.New(`^test result: (ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored; (\d+) measured; (\d+) filtered out`)
	cargoOutput  = lazyregexp.New(`^---- (.+) stdout ----$`)
)

// cargoReader reads the output of one test program after the other.
type cargoReader struct {
	*builder
	target  string
	cases   []Case
	named   map[string]bool
	count   int // of "running N tests"; -1 outside
	results bool
	message *strings.Builder
	outputs map[string]*strings.Builder
	open    bool // a test program was started and has no summary yet
}

func (cargo) read(_ call, r run) Report {
	c := cargoReader{builder: newBuilder(), count: -1}
	output := r.output
	if len(output) > maxBytes {
		c.doubt("the output is too long")
		output = output[:maxBytes]
	}
	lines := bufio.NewScanner(bytes.NewReader(output))
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		c.line(strings.TrimRight(lines.Text(), "\r"))
	}
	if lines.Err() != nil {
		c.doubt("the output has a line that is too long")
	}
	c.close()
	return c.report()
}

func (c *cargoReader) line(line string) {
	if found := cargoTarget.FindStringSubmatch(line); found != nil {
		c.start(found[2] + ":" + found[1])
		return
	}
	if found := cargoDoc.FindStringSubmatch(line); found != nil {
		c.start(found[1] + ":doc")
		return
	}
	switch found := cargoRunning.FindStringSubmatch(line); {
	case found != nil && c.open && c.count < 0:
		c.count, _ = strconv.Atoi(found[1])
		c.results = true
	case found != nil && c.results:
		c.doubt("%s counts its tests twice", c.target)
	case c.results && line == "" && len(c.cases) >= c.count:
		c.results = false
	case c.results:
		c.result(line)
	case c.count >= 0:
		c.after(line)
	}
}

func (c *cargoReader) start(target string) {
	c.close()
	c.target, c.open, c.count, c.results, c.cases = target, true, -1, false, nil
	c.named, c.message, c.outputs = map[string]bool{}, nil, map[string]*strings.Builder{}
}

func (c *cargoReader) result(line string) {
	found := cargoTest.FindStringSubmatch(line)
	if found == nil {
		return // something that the tests printed
	}
	if len(c.cases) >= MaxCases {
		c.doubt("there are more than %d tests", MaxCases)
		return
	}
	status := map[byte]Status{'o': Passed, 'F': Failed, 'i': Skipped}[found[2][0]]
	name := c.target + " " + found[1]
	if c.named[name] {
		c.doubt("%s has two results: something printed one", name)
	}
	c.named[name] = true
	reason, _ := strings.CutPrefix(found[2], "ignored, ")
	next := Case{Name: name, Status: status}
	if status == Skipped && reason != found[2] {
		next.Message = reason
	}
	c.cases = append(c.cases, next)
}

// after reads what follows the results: outputs of tests that failed, and the summary.
func (c *cargoReader) after(line string) {
	if found := cargoOutput.FindStringSubmatch(line); found != nil && len(c.outputs) < MaxCases {
		c.message = &strings.Builder{}
		c.outputs[c.target+" "+found[1]] = c.message
		return
	}
	if found := cargoResult.FindStringSubmatch(line); found != nil {
		c.summary(found)
		return
	}
	keep(c.message, line+"\n")
}

func (c *cargoReader) summary(found []string) {
	numbers := map[Status]int{}
	for _, next := range c.cases {
		numbers[next.Status]++
	}
	number := func(i int) int { n, _ := strconv.Atoi(found[i]); return n }
	if !c.open {
		c.doubt("%s has two summaries: something printed one", c.target)
		return
	}
	if number(2) != numbers[Passed] || number(3) != numbers[Failed] || number(4) != numbers[Skipped] || number(5) != 0 ||
		len(c.cases) != c.count || (found[1] == "ok") != (numbers[Failed] == 0) {
		c.doubt("%s: the summary and the results do not agree", c.target)
	}
	c.open = false
}

// close adds what a test program reported.
func (c *cargoReader) close() {
	if c.target == "" {
		return
	}
	if c.open {
		c.doubt("%s ended before its summary", c.target)
	}
	for _, next := range c.cases {
		if output := c.outputs[next.Name]; output != nil && next.Status == Failed {
			next.Message = output.String()
		}
		c.add(next)
	}
	c.target = ""
}
