package phasetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
)

// Phases is how the phases went, as phase/status in order.
func (w *World) Phases() []string {
	var phases []string
	for _, event := range w.events {
		if entry := w.entry(event); event.Kind == task.PhaseChanged {
			phases = append(phases, string(entry.Phase)+"/"+entry.Status)
		}
	}
	return phases
}

// EntryOf is the number of the entry with which a phase came to a status, as phase/status,
// the first time.
func (w *World) EntryOf(want string) int {
	for i, event := range w.events {
		if entry := w.entry(event); event.Kind == task.PhaseChanged && string(entry.Phase)+"/"+entry.Status == want {
			return i + 1
		}
	}
	w.t.Fatalf("there was no %s", want)
	return 0
}

func (w *World) entry(event task.Event) phase.Entry {
	var entry phase.Entry
	if err := json.Unmarshal(event.Data, &entry); err != nil {
		w.t.Fatal(err)
	}
	return entry
}

// Verdict is what the last verification came to.
func (w *World) Verdict() phase.Verdict {
	var verdict phase.Verdict
	for _, event := range w.events {
		if entry := w.entry(event); event.Kind == task.PhaseChanged && entry.Phase == task.Verification && len(entry.Outcome) > 0 {
			verdict = phase.Verdict{}
			if err := json.Unmarshal(entry.Outcome, &verdict); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	return verdict
}

// Ledger is what became of each comment, as position:change and :refused.
func (w *World) Ledger() []string {
	var ledger []string
	for _, event := range w.events {
		entry := w.entry(event)
		if event.Kind != task.SignalTaken {
			continue
		}
		for _, taken := range entry.Signal.Comments {
			line := fmt.Sprintf("%d:%s", taken.Position, taken.Change)
			if taken.Refused != "" {
				line += ":refused"
			}
			ledger = append(ledger, line)
		}
	}
	return ledger
}

// Prompts is everything that the model was sent.
func (w *World) Prompts() string {
	var b strings.Builder
	for _, record := range w.model.Records() {
		b.WriteString(TextOf(record.Request))
	}
	return b.String()
}

// TextOf is all the text of a request.
func TextOf(request llm.Request) string {
	var b strings.Builder
	b.WriteString(request.System + "\n")
	for _, message := range request.Messages {
		b.WriteString(message.Text() + "\n")
		for _, result := range message.Results() {
			b.WriteString(result.Text + "\n")
		}
	}
	return b.String()
}

// Executing is everything that the model was sent that does the work.
func (w *World) Executing() string {
	var b strings.Builder
	for _, request := range w.Requests(task.Execution) {
		b.WriteString(TextOf(request))
	}
	return b.String()
}

// tooLate is in the last comment when it names comments that were not dealt with.
const tooLate = "came too late for this run"

// UnsentComments are comments that a run has taken up and that the model that does the work was
// never sent, by the entries of its journal. It has an answer when they are few.
func UnsentComments(entries []phase.Entry, executing string) []string {
	const few = 16_000
	var bodies []string
	size := 0
	for _, entry := range entries {
		if entry.Signal == nil {
			continue
		}
		for _, taken := range entry.Signal.Comments {
			if body := strings.TrimSpace(taken.Body); taken.Refused == "" && taken.Change != "deleted" {
				bodies, size = append(bodies, body), size+len(body)
			}
		}
	}
	if size > few {
		return nil // older ones may be shortened
	}
	return slices.DeleteFunc(bodies, func(body string) bool { return strings.Contains(executing, body) })
}

// Requests are what the model was sent from a phase, oldest first.
func (w *World) Requests(from task.Phase) []llm.Request {
	var requests []llm.Request
	for _, record := range w.model.Records() {
		if record.Request.Phase == from {
			requests = append(requests, record.Request)
		}
	}
	return requests
}

// shown are the addresses of the images that the model was shown in a phase; see [Scenario].
func (w *World) shown(from task.Phase) (links []string) {
	for _, request := range w.Requests(from) {
		for _, message := range request.Messages {
			for _, image := range message.Images() {
				links = append(links, string(image.Data))
			}
		}
	}
	slices.Sort(links)
	return slices.Compact(links)
}

// Journal is everything that the journal has, as text.
func (w *World) Journal() string { return w.whole() }

// File is a file as a ref has it, or nothing.
func (w *World) File(ref, name string) string {
	if !slices.Contains(strings.Split(w.git(w.origin, "ls-tree", "-r", "-z", "--name-only", ref), "\x00"), name) {
		return ""
	}
	return w.git(w.origin, "show", ref+":"+name)
}

// Pulls are the pull requests that were opened.
func (w *World) Pulls() []phase.OpenPull { return w.forge.pulls }

// Comments are the texts of the comments that the run wrote, by their names.
func (w *World) Comments() map[string]string { return w.forge.said }

// Check holds what happened against what the scenario expects.
func (w *World) Check() {
	w.t.Helper()
	expect, last := w.scenario.Expect, w.Outcomes[len(w.Outcomes)-1]
	if last.State != expect.State || last.Reason != expect.Reason {
		w.t.Errorf("the run ended %s/%s, want %s/%s; it says: %s", last.State, last.Reason, expect.State, expect.Reason, last.Comment)
	}
	if len(expect.States) > 0 {
		var states []string
		for _, outcome := range w.Outcomes {
			states = append(states, string(outcome.State)+"/"+string(outcome.Reason))
		}
		w.equal("states", states, expect.States)
	}
	if len(expect.Phases) > 0 {
		w.equal("phases", w.Phases(), expect.Phases)
	}
	if len(expect.Ledger) > 0 {
		w.equal("ledger", w.Ledger(), expect.Ledger)
	}
	w.contains("what the model was sent", w.Prompts(), expect.Asked)
	if len(w.scenario.Images) > 0 {
		w.equal("images that the model was shown that does the work", w.shown(task.Execution), expect.Shown)
	}
	w.contains("what the model was sent that does the work", w.Executing(), expect.Executing)
	var entries []phase.Entry
	for _, event := range w.events {
		entries = append(entries, w.entry(event))
	}
	if unheard := UnsentComments(entries, w.Executing()); last.State == task.Done && len(unheard) > 0 && !strings.Contains(last.Comment, tooLate) {
		w.t.Errorf("the work is done without %q", unheard)
	}
	w.contains("the journal", w.Journal(), expect.Journal)
	w.contains("the last comment", last.Comment, expect.Comment)
	w.contains("the summary", last.Summary, expect.Summary)
	if head := w.git(w.origin, "rev-parse", "refs/heads/main"); head != w.main {
		w.t.Errorf("main was moved to %s", head)
	}
	w.checkSecrets()
	w.checkPull(expect)
	said := w.forge.everything()
	w.contains("what was said", said, expect.Said)
	for _, text := range expect.NotSaid {
		if strings.Contains(said+last.Comment, text) {
			w.t.Errorf("people can read %q", text)
		}
	}
	for thread, text := range expect.Replies {
		w.contains("the reply in "+thread, w.forge.replies[thread], []string{text})
	}
	if len(expect.Replies) != len(w.forge.replies) {
		w.t.Errorf("there are %d replies, want %d: %v", len(w.forge.replies), len(expect.Replies), w.forge.replies)
	}
	for name, text := range expect.Kept {
		w.contains("the kept "+name, w.File(task.WIPRef, name), []string{text})
	}
}

// checkSecrets looks for secrets everywhere: in what people read, what the model
// was sent, the journal and the branch.
func (w *World) checkSecrets() {
	w.t.Helper()
	for _, secret := range w.scenario.Secrets {
		places := map[string]string{"what people read": w.forge.everything(), "what the model was sent": w.Prompts(), "the journal": w.whole()}
		for place, text := range places {
			if strings.Contains(text, secret) {
				w.t.Errorf("%s has a secret in it", place)
			}
		}
	}
}

func (w *World) whole() string {
	var b strings.Builder
	for _, event := range w.events {
		b.Write(event.Data)
	}
	return b.String()
}

func (w *World) checkPull(expect Expect) {
	w.t.Helper()
	if expect.NoPull {
		if len(w.forge.pulls) > 0 {
			w.t.Errorf("there is a pull request: %+v", w.forge.pulls)
		}
		return
	}
	if len(expect.Pull)+len(expect.NotPull)+len(expect.Files)+len(expect.Absent) == 0 && !expect.Draft {
		return
	}
	if len(w.forge.pulls) != 1 {
		w.t.Fatalf("there are %d pull requests, want 1", len(w.forge.pulls))
	}
	pull := w.forge.pulls[0]
	if head := w.git(w.origin, "rev-parse", "refs/heads/"+branch); pull.Commit != head {
		w.t.Errorf("the pull request has the commit %s and the branch %s", pull.Commit, head)
	}
	w.contains("the title", pull.Title, []string{expect.Title})
	w.contains("the description", pull.Body, expect.Pull)
	for _, text := range expect.NotPull {
		if strings.Contains(pull.Body, text) {
			w.t.Errorf("%q is in the description:\n%s", text, pull.Body)
		}
	}
	if pull.Draft != expect.Draft {
		w.t.Errorf("draft is %v, want %v", pull.Draft, expect.Draft)
	}
	if len(expect.Parents) > 0 {
		var want []string
		for _, name := range expect.Parents {
			want = append(want, map[string]string{"main": w.main, "theirs": w.theirs, "start": w.start}[name])
		}
		w.equal("parents", strings.Fields(w.git(w.origin, "rev-parse", pull.Commit+"^@")), want)
	}
	for name, text := range expect.Files {
		w.contains(name+" of the branch", w.File("refs/heads/"+branch, name), []string{text})
	}
	for _, name := range expect.Absent {
		if strings.Contains("\n"+w.git(w.origin, "ls-tree", "-r", "--name-only", "refs/heads/"+branch), "\n"+name) {
			w.t.Errorf("the branch has %s", name)
		}
	}
}

func (w *World) contains(what, text string, parts []string) {
	w.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			w.t.Errorf("%s does not have %q:\n%s", what, part, text[:min(len(text), 6000)])
		}
	}
}

func (w *World) equal(what string, got, want []string) {
	w.t.Helper()
	if !slices.Equal(got, want) {
		w.t.Errorf("%s:\ngot  %s\nwant %s", what, strings.Join(got, " "), strings.Join(want, " "))
	}
}

// Tree lists the files of the published branch with their contents' hashes.
func (w *World) Tree() string { return w.git(w.origin, "ls-tree", "-r", "refs/heads/"+branch) }

// History lists the commits that lead to one.
func (w *World) History(commit string) string { return w.git(w.origin, "log", "--format=%H", commit) }

// JournalText is the journal in short lines.
func (w *World) JournalText() string {
	var b strings.Builder
	for _, event := range w.events {
		data := string(event.Data)
		fmt.Fprintf(&b, "%d g%d %s %s %s\n", event.Position, event.Generation, event.At.Format("05.000"), event.Kind, data[:min(len(data), 200)])
	}
	return b.String()
}

// Log is the history of the published branch.
func (w *World) Log() string { return w.git(w.origin, "log", "--format=%B", "refs/heads/"+branch) }

// AddEvent adds an event of an earlier run to the journal.
func (w *World) AddEvent(event task.Event) { w.events = append(w.events, event) }

// PhaseDuration is how long the phase was active the first time.
func (w *World) PhaseDuration(name task.Phase) time.Duration {
	var begun time.Time
	for _, event := range w.events {
		entry := w.entry(event)
		switch {
		case event.Kind != task.PhaseChanged || entry.Phase != name:
		case entry.Status == phase.PhaseActive:
			begun = event.At
		default:
			return event.At.Sub(begun)
		}
	}
	return 0
}

// StableShare is how much of each request but the last the next one begins with.
func StableShare(requests []llm.Request) float64 {
	share := 0.0
	for i := 1; i < len(requests); i++ {
		before, after := flat(requests[i-1]), flat(requests[i])
		share += float64(script.CommonPrefix(before, after)) / float64(len(before))
	}
	return share / float64(max(len(requests)-1, 1))
}

func flat(request llm.Request) string {
	var b strings.Builder
	b.WriteString(request.System)
	for _, message := range request.Messages {
		for _, part := range message.Parts {
			b.WriteString(part.Text)
			if part.Call != nil {
				b.WriteString(part.Call.Name + part.Call.Arguments)
			}
			if part.Result != nil {
				b.WriteString(part.Result.Text)
			}
		}
	}
	return b.String()
}
