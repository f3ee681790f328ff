package script

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// ProblemsError is what is wrong with a script: one line for each problem, with its
// place in the file.
type ProblemsError struct {
	File string
	List []string
}

// Error names the first problem and counts the others.
func (p *ProblemsError) Error() string { return p.coded().Error() }

// Unwrap gives the error with its code of package task.
func (p *ProblemsError) Unwrap() error { return p.coded() }

func (p *ProblemsError) coded() *task.Error {
	err := task.Errorf(task.BadConfig, "%s", p.List[0])
	if more := len(p.List) - 1; more > 0 {
		err = err.WithHint("%q shows this and %d more", "toryo script check "+p.File, more)
	}
	return err
}

// Parse reads and checks a script. Name is that of the file, for the messages.
// The error is a [*ProblemsError].
func Parse(name string, data []byte) (*Script, error) {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, &ProblemsError{name, []string{describe(name, err)}}
	}
	check := &checker{name: name, file: file}
	check.durations()
	if len(check.problems) > 0 {
		return nil, &ProblemsError{name, check.problems}
	}
	script := &Script{}
	if err := yaml.UnmarshalWithOptions(data, script, yaml.Strict()); err != nil {
		return nil, &ProblemsError{name, []string{describe(name, err)}}
	}
	check.script(script)
	if len(check.problems) > 0 {
		return nil, &ProblemsError{name, check.problems}
	}
	return script, nil
}

// New checks a script that was made in code. The error names rules by number.
func New(script Script) (*Script, error) {
	check := &checker{name: "script"}
	check.script(&script)
	if len(check.problems) > 0 {
		return nil, &ProblemsError{check.name, check.problems}
	}
	return &script, nil
}

// describe turns an error of the YAML library into one line with the place.
func describe(name string, err error) string {
	var placed yaml.Error
	if errors.As(err, &placed) && placed.GetToken() != nil {
		return fmt.Sprintf("%s:%d: %s", name, placed.GetToken().Position.Line, placed.GetMessage())
	}
	return name + ": " + textfmt.OneLine(err.Error())
}

type checker struct {
	name     string
	file     *ast.File
	problems []string
}

func (c *checker) wrong(path, format string, args ...any) {
	place := c.name
	if line := c.line(path); line > 0 {
		place = fmt.Sprintf("%s:%d", c.name, line)
	}
	c.problems = append(c.problems, fmt.Sprintf("%s: %s: %s", place, strings.TrimPrefix(path, "$."), fmt.Sprintf(format, args...)))
}

// line finds the line of a key, or of the nearest thing around it.
func (c *checker) line(path string) int {
	for c.file != nil && path != "" {
		if query, err := yaml.PathString(path); err == nil {
			if node, err := query.FilterFile(c.file); err == nil && node.GetToken() != nil {
				return node.GetToken().Position.Line
			}
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 1 {
			return 0
		}
		path = path[:cut]
	}
	return 0
}

// durations looks at the durations by itself, because the library does not say
// where a bad one stands.
func (c *checker) durations() {
	for _, document := range c.file.Docs {
		ast.Walk(durationVisitor{c}, document.Body)
	}
}

type durationVisitor struct{ checker *checker }

func (v durationVisitor) Visit(node ast.Node) ast.Visitor {
	pair, ok := node.(*ast.MappingValueNode)
	if !ok {
		return v
	}
	switch key := pair.Key.GetToken().Value; key {
	case "delay", "pace", "retry_after":
		value, ok := pair.Value.(ast.ScalarNode)
		if !ok || strings.Contains(pair.GetPath(), ".arguments.") {
			break
		}
		if _, err := time.ParseDuration(value.GetToken().Value); err != nil {
			v.checker.wrong(pair.Value.GetPath(), "%q is not a duration such as 100ms or 2s", value.GetToken().Value)
		}
	}
	return v
}

func (c *checker) script(script *Script) {
	if script.Model == "" {
		script.Model = defaultModel
	}
	if len(script.Rules) == 0 {
		c.wrong("$.rules", "there are no rules")
	}
	names := map[string]int{}
	for i := range script.Rules {
		rule := &script.Rules[i]
		at := fmt.Sprintf("$.rules[%d]", i)
		if rule.Name == "" {
			rule.Name = fmt.Sprintf("rule %d", i+1)
		}
		if first, taken := names[rule.Name]; taken {
			c.wrong(at+".name", "%q is the name of rule %d already", rule.Name, first+1)
		} else {
			names[rule.Name] = i
		}
		if rule.Times < 0 {
			c.wrong(at+".times", "is negative")
		}
		c.when(at+".when", &rule.When)
		c.answer(at+".answer", &rule.Answer)
	}
}

func (c *checker) when(at string, when *When) {
	if when.Phase != "" && !when.Phase.Valid() {
		c.wrong(at+".phase", "there is no phase %q", when.Phase)
	}
	if when.Turn < 0 {
		c.wrong(at+".turn", "turns count from 1")
	}
	if when.Failed != nil && when.Tool == "" {
		c.wrong(at+".failed", "needs tool beside it")
	}
	if when.LastMatches != "" {
		matches, err := regexp.Compile(when.LastMatches)
		if err != nil {
			c.wrong(at+".last_matches", "%v", err)
		}
		when.matches = matches
	}
}

func (c *checker) answer(at string, answer *Answer) {
	if answer.Text == "" && answer.Thinking == "" && len(answer.Calls) == 0 && answer.Error == nil && answer.Stop == "" {
		c.wrong(at, "answers nothing: give text, calls, error or stop")
	}
	switch answer.Stop {
	case "", stopEnd, stopCalls, stopMaxTokens, stopRefusal:
	default:
		c.wrong(at+".stop", "%q is none of end, calls, max_tokens, refusal", answer.Stop)
	}
	for _, amount := range []struct {
		key   string
		value int64
	}{{"delay", int64(answer.Delay)}, {"pace", int64(answer.Pace)}, {"cut", int64(answer.Cut)}} {
		if amount.value < 0 {
			c.wrong(at+"."+amount.key, "is negative")
		}
	}
	c.calls(at, answer.Calls)
	if failure := answer.Error; failure != nil && failure.After == 0 && (failure.Status < 400 || failure.Status > 599) {
		c.wrong(at+".error.status", "%d is not an HTTP error", failure.Status)
	}
}

func (c *checker) calls(at string, calls []Call) {
	for i, call := range calls {
		where := fmt.Sprintf("%s.calls[%d]", at, i)
		if call.Name == "" {
			c.wrong(where, "the call has no name")
		}
		if call.Raw != "" && call.Arguments != nil {
			c.wrong(where+".raw", "and arguments are both set")
		}
	}
}
