package testreport

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// rspec writes JSON beside what it prints.
type rspec struct{}

func (rspec) name() string { return "rspec" }

func (rspec) matches(words []string) bool {
	return path.Base(words[0]) == "rspec" && !slices.Contains(words, "--dry-run")
}

const rspecReport = "rspec.json"

func (rspec) command(c call, dir string, only []string) (string, bool) {
	arguments := []string{"--format", "progress", "--format", "json", "--out", dir + "/" + rspecReport}
	for _, name := range only {
		_, description, found := strings.Cut(name, " ")
		if !found {
			return "", false
		}
		arguments = append(arguments, "--example", description)
	}
	return shellScript(dir, nil, c.with(arguments...)), true
}

func (rspec) read(_ call, r run) Report {
	b := newBuilder()
	var results struct {
		Examples []struct {
			Description string `json:"full_description"`
			Status      string `json:"status"`
			File        string `json:"file_path"`
			Pending     string `json:"pending_message"`
			Exception   struct {
				Message string `json:"message"`
			} `json:"exception"`
		} `json:"examples"`
		Messages []string `json:"messages"`
		Summary  *struct {
			Examples int `json:"example_count"`
			Failures int `json:"failure_count"`
			Pending  int `json:"pending_count"`
			Outside  int `json:"errors_outside_of_examples_count"`
		} `json:"summary"`
	}
	data, err := readFile(r.files, rspecReport, maxBytes)
	if err == nil {
		err = json.Unmarshal(data, &results)
	}
	if err != nil || results.Summary == nil {
		b.doubt("rspec wrote no report: %v", err)
		return b.report()
	}
	counted := map[Status]int{}
	for _, e := range results.Examples {
		status := map[string]Status{"passed": Passed, "failed": Failed, "pending": Skipped}[e.Status]
		counted[status]++
		b.add(Case{Name: strings.TrimPrefix(e.File, "./") + " " + e.Description, File: strings.TrimPrefix(e.File, "./"), Status: status, Message: e.Exception.Message + e.Pending})
	}
	if s := results.Summary; s.Examples != len(results.Examples) || s.Failures != counted[Failed] || s.Pending != counted[Skipped] {
		b.doubt("rspec counts other numbers of tests than it names")
	} else if s.Outside > 0 {
		b.add(Case{Name: "errors outside of examples", Status: Failed, Message: strings.Join(results.Messages, "\n")})
	}
	return b.report()
}

// phpunit writes XML after that of JUnit.
type phpunit struct{}

func (phpunit) name() string { return "phpunit" }

func (phpunit) matches(words []string) bool {
	if path.Base(words[0]) == "php" && len(words) > 1 {
		words = words[1:]
	}
	return slices.Contains([]string{"phpunit", "phpunit.phar"}, path.Base(words[0])) && !slices.Contains(words, "--log-junit")
}

func (phpunit) command(c call, dir string, only []string) (string, bool) {
	arguments := []string{"--log-junit", dir + "/phpunit.xml"}
	if len(only) > 0 {
		names := []string{}
		for _, name := range only {
			names = append(names, regexp.QuoteMeta(name))
		}
		arguments = append(arguments, "--filter", "/^("+strings.ReplaceAll(strings.Join(names, "|"), "/", `\/`)+")$/")
	}
	return shellScript(dir, nil, c.with(arguments...)), true
}

func (phpunit) read(_ call, r run) Report {
	b := newBuilder()
	r.readXML(b, "phpunit", func(path []*element) Case {
		e := path[len(path)-1]
		return Case{Name: e.attribute("class") + "::" + e.attribute("name"), File: e.attribute("file")}
	})
	return b.report()
}

// dotnet writes the XML of Visual Studio, one file for each project.
type dotnet struct{}

func (dotnet) name() string { return "dotnet test" }

func (dotnet) matches(words []string) bool {
	return path.Base(words[0]) == "dotnet" && len(words) > 1 && words[1] == "test" && !slices.ContainsFunc(words, func(w string) bool {
		return w == "--" || w == "--list-tests" || w == "-t" || w == "--results-directory" || w == "-r"
	})
}

var dotnetSpecial = lazyregexp.New(`[\\()&|=!~]`)

func (dotnet) command(c call, dir string, only []string) (string, bool) {
	arguments := []string{"--logger", "trx", "--results-directory", dir}
	if len(only) > 0 {
		filters := []string{}
		for _, name := range only {
			method, _, _ := strings.Cut(name, "(")
			filters = append(filters, "FullyQualifiedName="+dotnetSpecial.ReplaceAllString(method, `\$0`))
		}
		arguments = append(arguments, "--filter", strings.Join(filters, "|"))
	}
	return shellScript(dir, nil, c.with(arguments...)), true
}

func (dotnet) read(_ call, r run) Report {
	b := newBuilder()
	if r.eachReport(b, ".trx", func(name string, data []byte) { readTRX(b, name, data) }) == 0 {
		b.doubt("dotnet wrote no report")
	}
	return b.report()
}
