package receipt

import (
	"encoding/json"
	"time"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// The types of the formats.
const (
	StatementType = "https://in-toto.io/Statement/v1"
	PredicateType = "https://in-toto.io/attestation/test-result/v0.1"
	PayloadType   = "application/vnd.in-toto+json"
)

// The results that a predicate can have.
const (
	Passed = "PASSED"
	// Warned means that nothing is worse than before the work, but that some tests
	// failed before too, or that none could be run.
	Warned = "WARNED"
	Failed = "FAILED"
)

// Statement is an in-toto Statement about commits, with a test result.
type Statement struct {
	Type          string       `json:"_type"`
	Subject       []Descriptor `json:"subject"`
	PredicateType string       `json:"predicateType"`
	Predicate     Predicate    `json:"predicate"`
}

// Descriptor is an in-toto ResourceDescriptor, as far as receipts use it.
type Descriptor struct {
	Name      string            `json:"name,omitempty"`
	URI       string            `json:"uri,omitempty"`
	Digest    map[string]string `json:"digest,omitempty"`
	Content   []byte            `json:"content,omitempty"`
	MediaType string            `json:"mediaType,omitempty"`
}

// Predicate is in-toto's test result v0.1, with a field of ours.
type Predicate struct {
	Result        string       `json:"result"`
	Configuration []Descriptor `json:"configuration"`
	URL           string       `json:"url,omitempty"`
	WarnedTests   []string     `json:"warnedTests,omitempty"`
	FailedTests   []string     `json:"failedTests,omitempty"`
	Toryo         Extension    `json:"toryo"`
}

// Extension is what the predicate has no place for.
type Extension struct {
	Facts
	Verdict Verdict `json:"verdict"`
}

// Facts is what the server knows itself.
type Facts struct {
	Repository string    `json:"repository"`
	Commit     string    `json:"commit"` // that was published
	Tree       string    `json:"tree,omitempty"`
	BaseBranch string    `json:"baseBranch,omitempty"`
	Base       string    `json:"base,omitempty"` // commit of the base branch that the work stands on
	Item       string    `json:"item"`           // that asked for the work
	Task       task.ID   `json:"task"`
	Generation int64     `json:"generation"`
	Draft      bool      `json:"draft,omitempty"` // the work has something in it that nobody asked for
	SignedAt   time.Time `json:"signedAt"`
	// Run is where people see the run; it is the predicate's url.
	Run string `json:"-"`
}

// hash is how git writes the name of an object.
var hash = lazyregexp.New(`\A(?:[0-9a-f]{40}|[0-9a-f]{64})\z`)

// imageDigest is what the identity of an image ends with.
var imageDigest = lazyregexp.New(`(?:\A|@)sha256:([0-9a-f]{64})\z`)

// New makes the statement about a commit. The verdict is the agent's and is checked.
func New(facts Facts, verdict Verdict) (Statement, error) {
	if err := verdict.Check(); err != nil {
		return Statement{}, err
	}
	if !hash.MatchString(facts.Commit) {
		return Statement{}, task.Errorf(task.Invalid, "%.100q is not the name of a commit", facts.Commit)
	}
	facts.SignedAt = facts.SignedAt.UTC().Truncate(time.Second)
	predicate := Predicate{
		Result: result(facts, verdict), Configuration: configuration(facts, verdict), URL: facts.Run,
		Toryo: Extension{Facts: facts, Verdict: verdict},
	}
	for _, project := range verdict.Projects {
		for _, run := range project.Runs {
			predicate.FailedTests = append(append(predicate.FailedTests, run.Failed...), run.FailedBefore...)
			predicate.WarnedTests = append(predicate.WarnedTests, run.Flaky...)
		}
	}
	return Statement{
		Type: StatementType, PredicateType: PredicateType, Predicate: predicate,
		Subject: []Descriptor{{Name: facts.Repository, Digest: map[string]string{"gitCommit": facts.Commit}}},
	}, nil
}

// result is the verdict in the three words that the predicate knows.
func result(facts Facts, verdict Verdict) string {
	if !verdict.Passed {
		return Failed
	}
	tested := false
	for _, project := range verdict.Projects {
		for _, run := range project.Runs {
			if run.ExitCode != 0 || run.TimedOut || len(run.Failed)+len(run.FailedBefore)+len(run.Flaky) > 0 {
				return Warned
			}
			tested = tested || run.Kind == TestRun
		}
	}
	if !tested || !verdict.Environment.Ready || verdict.NotRun != "" || len(verdict.Findings) > 0 || facts.Draft {
		return Warned
	}
	return Passed
}

// configuration is what the result depends on: the base, the environment and the
// commands.
func configuration(facts Facts, verdict Verdict) []Descriptor {
	all := []Descriptor{} // the field has to be there
	if facts.Base != "" {
		all = append(all, Descriptor{Name: "base", Digest: map[string]string{"gitCommit": facts.Base}})
	}
	if identity := verdict.Environment.Identity; identity != "" {
		digest := map[string]string{"toryoEnvironment": identity}
		if found := imageDigest.FindStringSubmatch(identity); found != nil {
			digest = map[string]string{"sha256": found[1]}
		}
		all = append(all, Descriptor{Name: "environment", Digest: digest})
	}
	command := func(name, text string) {
		all = append(all, Descriptor{Name: name, Content: []byte(text), MediaType: "text/x-shellscript"})
	}
	for _, text := range verdict.Environment.SetupCommands {
		command("set-up", text)
	}
	for _, project := range verdict.Projects {
		for _, run := range project.Runs {
			command(run.Kind+" of "+project.Folder, run.Command)
		}
	}
	return all
}

// parse reads a statement, and refuses what is not one about a commit with a test
// result. Fields that it does not know are ignored, as in-toto demands.
func parse(payload []byte) (Statement, error) {
	var statement Statement
	if err := json.Unmarshal(payload, &statement); err != nil {
		return Statement{}, refused("the signed text is not an in-toto statement", "this key has signed something else: check which file it is")
	}
	switch {
	case statement.Type != StatementType:
		return Statement{}, refused("it is a statement of another type, "+quoted(statement.Type), "a receipt has the type "+StatementType)
	case statement.PredicateType != PredicateType:
		return Statement{}, refused("it states something else, "+quoted(statement.PredicateType), "a receipt has the predicate "+PredicateType)
	case len(statement.Subject) != 1 || !hash.MatchString(statement.Subject[0].Digest["gitCommit"]):
		return Statement{}, refused("it is not about one commit", "get the receipt again from the server that made it")
	case statement.Predicate.Toryo.Commit != statement.Commit():
		return Statement{}, refused("it names two commits", "a Toryo server makes no such receipt: ask who has the key")
	}
	return statement, nil
}

// Commit is the commit that the statement is about.
func (s Statement) Commit() string {
	if len(s.Subject) == 0 {
		return ""
	}
	return s.Subject[0].Digest["gitCommit"]
}
