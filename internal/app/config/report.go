package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

// Problem is one thing that is wrong with the configuration.
type Problem struct {
	File    string // the file, the environment variable or "command line"
	Line    int    // 0 when there is none
	Column  int
	Key     string // "github.owner"; "" when it is about the whole file
	Message string
	Hint    string // what to do about it; may be ""
	source  source
	unread  bool // it is about a file that cannot be opened
	secret  bool // the file is for a secret
}

// String is the problem in one line, in the form in which compilers report:
// editors can jump to it.
func (p Problem) String() string {
	var text strings.Builder
	text.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&text, ":%d:%d", p.Line, p.Column)
	}
	if p.File != "" {
		text.WriteString(": ")
	}
	if p.Key != "" {
		text.WriteString(p.Key + ": ")
	}
	text.WriteString(p.Message)
	if p.Hint != "" {
		text.WriteString("; " + p.Hint)
	}
	return text.String()
}

// source is where a value comes from. A later one goes over an earlier one.
type source int

const (
	fromDefault source = iota
	fromFile
	fromEnvironment
	fromFlag
)

const commandLine = "command line"

// Origin says where the value of a key comes from.
type Origin struct {
	source source
	name   string // file or variable
	line   int
	column int
	via    string // the key that named a file, for a secret

	wellKnown bool // it is a variable of other programs
}

// String is "default", "default for FILE" where it depends on the file, "toryo.yaml:12", the
// name of a variable, or "flag". For a secret that was read from a file it names the key which
// said so. A variable that is not one of Toryo's is called so.
func (o Origin) String() string {
	text := "default"
	switch o.source {
	case fromDefault:
		if o.name != "" {
			text += " for " + o.name
		}
	case fromFile:
		text = fmt.Sprintf("%s:%d", o.name, o.line)
	case fromEnvironment:
		text = o.name
		if o.wellKnown {
			text = "from the environment variable " + o.name
		}
	case fromFlag:
		text = "flag"
	}
	if o.via != "" {
		return o.via + ", " + text
	}
	return text
}

// IsFlag says that a flag set the value.
func (o Origin) IsFlag() bool { return o.source == fromFlag }

// Variable is the variable that the value comes from, or that names its file; else it is empty.
func (o Origin) Variable() string {
	if o.source != fromEnvironment {
		return ""
	}
	return o.name
}

// IsDefault says that nobody set the value.
func (o Origin) IsDefault() bool { return o.source == fromDefault }

// Report is what [Load] found: problems, for which Toryo does not start, and
// warnings, with which it does, both in the order of the file's lines; what
// concerns variables and flags comes after.
type Report struct {
	Problems []Problem
	Warnings []Problem
	file     string
	origins  map[string]Origin
}

// File is the configuration that was read; empty if there was none.
func (r Report) File() string { return r.file }

// Origin says where the value of a key ("github.owner") comes from.
func (r Report) Origin(key string) Origin { return r.origins[key] }

const (
	databaseFile = "database.url_file"
	tlsKey       = "server.tls_key_file" // names a file with a secret that is no key itself
)

// Unread says that a file cannot be opened, the configuration itself or one that it names.
func (r Report) Unread() bool {
	return slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.unread })
}

// WithoutSecrets is the report for a command that needs no secrets: files of secrets that cannot be
// opened, as those of a service that only its user can read, are left out. If the URL of the
// database is among them, the error is for whoever needs the database.
func (r Report) WithoutSecrets() (rest Report, database error) {
	rest = r
	rest.Problems = nil
	for _, problem := range r.Problems {
		switch {
		case !problem.unread || !problem.secret:
			rest.Problems = append(rest.Problems, problem)
		case problem.Key == databaseFile:
			database = Report{Problems: []Problem{problem}, file: r.file}.Err()
		}
	}
	return rest, database
}

// Err is nil when there are no problems, and otherwise an error of the code
// [task.BadConfig] that names the first and counts the others.
func (r Report) Err() error {
	if len(r.Problems) == 0 {
		return nil
	}
	first := r.Problems[0]
	hint := first.Hint
	first.Hint = ""
	if more := len(r.Problems) - 1; more > 0 {
		check := "toryo config check"
		if r.file != "" {
			check += " " + r.file
		}
		if hint != "" {
			hint += "; "
		}
		hint += fmt.Sprintf("%q shows this and %d more", check, more)
	}
	return &task.Error{Code: task.BadConfig, Message: first.String(), Hint: hint}
}

// sortLine puts what has no line last.
func (p Problem) sortLine() int {
	if p.Line == 0 {
		return math.MaxInt
	}
	return p.Line
}

func sortProblems(list []Problem) {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.source, b.source),
			cmp.Compare(a.sortLine(), b.sortLine()),
			cmp.Compare(a.Column, b.Column),
			strings.Compare(a.File, b.File),
			strings.Compare(a.Key, b.Key),
		)
	})
}
