package task

import (
	"fmt"
	"strings"
)

// FindingKind says what is the matter with a change that is to be published.
type FindingKind string

// The kinds of finding.
const (
	FindingSecret     FindingKind = "secret"
	FindingTooLarge   FindingKind = "too_large"
	FindingProtected  FindingKind = "protected_file"
	FindingHost       FindingKind = "new_host"
	FindingLink       FindingKind = "link_outside"
	FindingSubmodule  FindingKind = "submodule"
	FindingExecutable FindingKind = "executable"
	FindingBinary     FindingKind = "binary"
)

// FindingKinds lists the kinds, the worst first.
var FindingKinds = []FindingKind{
	FindingSecret, FindingTooLarge, FindingProtected, FindingHost, FindingLink, FindingSubmodule, FindingExecutable, FindingBinary,
}

// Finding is something in a change that is not published as if nothing were the
// matter. No field has a secret in it.
type Finding struct {
	Kind   FindingKind `json:"kind"`
	Path   string      `json:"path,omitempty"`
	Line   int         `json:"line,omitempty"`   // in the new file; 0 for the whole of it
	Detail string      `json:"detail,omitempty"` // such as the host, or where a link leads
}

// Blocks reports whether a change with the finding is never published: a secret,
// and what is too large to be looked at for secrets.
func (f Finding) Blocks() bool { return f.Kind == FindingSecret || f.Kind == FindingTooLarge }

// Place is where the finding is, as one line.
func (f Finding) Place() string {
	name := strings.Join(strings.Fields(f.Path), " ")
	if f.Line > 0 {
		return fmt.Sprintf("%s:%d", name, f.Line)
	}
	return name
}

// InspectionOutcome is what became of work that was to be published.
type InspectionOutcome string

// The outcomes of an inspection that found something.
const (
	Withheld         InspectionOutcome = "withheld" // the model is told once
	PublishedAsDraft InspectionOutcome = "draft"
	PublishRefused   InspectionOutcome = "refused"
)

// Inspection is the data of an [Inspected] event.
type Inspection struct {
	Commit   string            `json:"commit"`
	Outcome  InspectionOutcome `json:"outcome"`
	Findings []Finding         `json:"findings"`
	Text     string            `json:"text"` // the same in words, for who reads the journal
}
