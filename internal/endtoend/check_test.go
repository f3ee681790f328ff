package endtoend

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
)

// outcome is everything that is the case when a story is over.
type outcome struct {
	task      task.Task
	item      forge.Item
	own       []string // comments of the bot, oldest first
	progress  []string // of which those that show how a run is getting on
	pulls     []forge.Item
	events    []task.Event
	asked     string // all that the model was sent
	executing string // of which what the model was sent that does the work
}

// read reads it.
func (s *story) read(t *testing.T) outcome {
	t.Helper()
	var o outcome
	var err error
	o.task, err = s.house.store.TaskOf(t.Context(), s.item, task.Development)
	must(t, err)
	o.item, err = s.site.look().Item(t.Context(), s.item)
	must(t, err)
	comments, err := s.site.look().Comments(t.Context(), s.item)
	must(t, err)
	for _, comment := range comments {
		if !strings.EqualFold(comment.Author, s.site.bot()) {
			continue
		}
		body := forge.StripMarker(comment.Body)
		if strings.HasPrefix(body, "## Toryo ") {
			o.progress = append(o.progress, body)
		}
		o.own = append(o.own, body)
	}
	listed, err := s.site.look().List(t.Context(), forge.Query{Repository: s.item.Repository, Kind: task.Pull})
	must(t, err)
	for _, one := range listed {
		pull, err := s.site.look().Item(t.Context(), one.Key)
		must(t, err)
		o.pulls = append(o.pulls, pull)
	}
	o.events, err = s.house.store.EventsAfter(t.Context(), o.task.ID, 0, 0)
	must(t, err)
	for _, record := range s.model.Records() {
		text := phasetest.TextOf(record.Request)
		if o.asked += text; record.Request.Phase == task.Execution {
			o.executing += text
		}
	}
	return o
}

func entryOf(event task.Event) (entry phase.Entry) {
	_ = json.Unmarshal(event.Data, &entry) // what is not the agent's is empty
	return entry
}

// states are what the runs came to, as state/reason.
func (o outcome) states() (states []string) {
	for _, event := range o.events {
		var change task.StateChange
		if event.Kind == task.StateChanged && json.Unmarshal(event.Data, &change) == nil && (change.To == task.Paused || change.To.Terminal()) {
			states = append(states, string(change.To)+"/"+string(change.Reason))
		}
	}
	return states
}

// phases are how the phases of the last life of the task went.
func (o outcome) phases() (phases []string) {
	for _, event := range o.events {
		if entry := entryOf(event); event.Kind == task.PhaseChanged && event.Generation >= o.task.FirstGeneration {
			phases = append(phases, string(entry.Phase)+"/"+entry.Status)
		}
	}
	return phases
}

// setup is what the journal has of the set-up of environments, a line for each entry.
func (o outcome) setup() string {
	var text strings.Builder
	text.WriteString("the set-up of environments:")
	for _, event := range o.events {
		if entry := entryOf(event); entry.Setup != nil || entry.Phase == task.EnvironmentSetup {
			fmt.Fprintf(&text, "\n%.1000s", event.Data)
		}
	}
	return text.String()
}

// ledger is what became of comments, with positions that count from what was there
// at the start.
func (o outcome) ledger(present int64) (ledger []string) {
	for _, event := range o.events {
		entry := entryOf(event)
		if event.Kind != task.SignalTaken || event.Source != task.FromAgent || entry.Signal == nil {
			continue
		}
		for _, taken := range entry.Signal.Comments {
			line := fmt.Sprintf("%d:%s", taken.Position-present, taken.Change)
			if taken.Refused != "" {
				line += ":refused"
			}
			ledger = append(ledger, line)
		}
	}
	return ledger
}

// check holds what is the case against what the scenario expects.
func (s *story) check(t *testing.T) {
	t.Helper()
	o, expect := s.read(t), s.Expect
	if !slices.Equal(o.phases(), expect.Phases) {
		t.Log(o.setup()) // first, because who reads a part of the output needs it most
	}
	if o.task.State != expect.State || o.task.Reason != expect.Reason {
		t.Errorf("the task is %s/%s, want %s/%s; the bot says: %s", o.task.State, o.task.Reason, expect.State, expect.Reason, strings.Join(o.own, "\n---\n"))
	}
	if expect.Runs > 0 && s.runs != expect.Runs && !s.late(o) {
		t.Errorf("there were %d runs, want %d", s.runs, expect.Runs)
	}
	for i, event := range s.Events {
		if !s.fired[i] {
			t.Errorf("event %d did not happen: %+v", i, event)
		}
	}
	equal(t, "states", o.states(), expect.States)
	equal(t, "phases", o.phases(), expect.Phases)
	equal(t, "ledger", o.ledger(s.present), expect.Ledger)
	var taken []string
	for i := range expect.Taken {
		taken = append(taken, fmt.Sprintf("%d:new", i+1))
	}
	equal(t, "ledger", o.ledger(s.present), taken)
	as := s.wording(o)
	contains(t, "what the model was sent", o.asked, expect.Asked, as)
	contains(t, "what the model was sent that does the work", o.executing, expect.Executing, as)
	var entries []phase.Entry
	for _, event := range o.events {
		entries = append(entries, entryOf(event))
	}
	if unheard := phasetest.UnsentComments(entries, o.executing); o.task.State == task.Done && len(unheard) > 0 && !strings.Contains(strings.Join(o.own, "\n"), "came too late for this run") {
		t.Errorf("the work is done without %q", unheard)
	}
	for _, text := range expect.Unasked {
		if strings.Contains(o.asked, text) {
			t.Errorf("the model was sent %q", text)
		}
	}
	for _, text := range expect.Unexecuting {
		if strings.Contains(o.executing, text) {
			t.Errorf("the model that does the work was sent %q", text)
		}
	}
	contains(t, "what the bot says", strings.Join(o.own, "\n"), expect.Said, as)
	s.checkPeople(t, o, as)
	s.checkPull(t, o, as)
	s.checkSecrets(t, o)
	main, err := git(t.Context(), "", "ls-remote", s.site.address(s.item.Repository), "refs/heads/main")
	must(t, err)
	if head, _, _ := strings.Cut(main, "\t"); head != s.main {
		t.Errorf("main was moved to %s", head)
	}
	s.checkKept(t, o)
	s.checkSummary(t, o)
}

// late reports whether the machine was so busy that an agent that lives was not heard
// of in time: then there are more runs than there would be.
func (s *story) late(o outcome) bool {
	lost := 0
	for _, event := range o.events {
		var change task.StateChange
		if event.Kind == task.StateChanged && json.Unmarshal(event.Data, &change) == nil && change.Trigger == task.Lost {
			lost++
		}
	}
	if s.crashed {
		lost--
	}
	return lost > 0
}

// wording puts into expected texts what is only known now.
func (s *story) wording(o outcome) *strings.Replacer {
	pairs := []string{"Closes #7", fmt.Sprintf("Closes #%d", s.item.Number), `author="mallory" access="none"`, `author="mallory" access="read"`}
	if len(o.pulls) > 0 {
		pairs = append(pairs, "http://forge.test/pulls/100", o.pulls[0].URL)
	}
	for id, real := range s.threads {
		pairs = append(pairs, "thread "+id+" ", "thread "+real+" ")
	}
	for id, real := range s.ids {
		pairs = append(pairs, "("+id+")", "("+real+")")
	}
	return strings.NewReplacer(pairs...)
}

// terminal are the comments of which there is one at the end, by the state.
var terminal = map[task.State]*regexp.Regexp{
	task.Stopped: regexp.MustCompile(`\*\*Stopped\.\*\* .* It took \d+\.\d s|\*\*停止しました。\*\* .* \d+\.\d 秒`),
	task.Paused:  regexp.MustCompile(`\*\*Paused\.\*\*|\*\*一時停止しました。\*\*`),
}

// checkPeople checks what people see on the item: the label of the state and no
// other, one comment that shows how it went, and one about each end.
func (s *story) checkPeople(t *testing.T, o outcome, as *strings.Replacer) {
	t.Helper()
	if add, remove := task.DefaultLabelNames().Change(o.item.Labels, o.task.State); len(add)+len(remove) > 0 {
		t.Errorf("the item is %s and has the labels %q", o.task.State, o.item.Labels)
	}
	for state, form := range terminal {
		count, want := 0, 0
		for _, text := range o.own {
			count += len(form.FindAllString(text, -1))
		}
		for _, one := range o.states() {
			if strings.HasPrefix(one, string(state)+"/") {
				want++
			}
		}
		if count != want {
			t.Errorf("people were told %d times that the task is %s, want %d:\n%s", count, state, want, strings.Join(o.own, "\n---\n"))
		}
	}
	for i, text := range o.own {
		if slices.Contains(o.own[:i], text) && !strings.HasPrefix(text, "**Resumed.**") && !strings.HasPrefix(text, "**Paused.**") {
			t.Errorf("people were told twice: %s", text)
		}
	}
	if len(s.Expect.Comment) > 0 {
		contains(t, "the last comment", o.own[len(o.own)-1], s.Expect.Comment, as)
	}
	for _, text := range s.Expect.NotSaid {
		if strings.Contains(strings.Join(o.own, "\n"), text) {
			t.Errorf("people can read %q", text)
		}
	}
}

// headings are what the progress comment begins with at the end, by the state.
var headings = map[task.State][]string{
	task.Done:    {"## Toryo has finished", "## Toryo の作業が完了しました"},
	task.Failed:  {"## Toryo could not finish", "## Toryo は作業を完了できませんでした"},
	task.Stopped: {"## Toryo was stopped", "## Toryo は停止しました"},
}

// checkProgress checks that each life of the task has one progress comment, and that
// the last says how it ended. It is written every few seconds at most, so this is for
// when everything else is over.
func (s *story) checkProgress(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s.settle(ctx, t, false)
	o, lives := s.read(t), 1
	for _, event := range s.Events {
		if event.Assign {
			lives++
		}
	}
	if s.runs == 0 && len(o.progress) == 0 {
		return
	}
	if len(o.progress) != lives {
		t.Errorf("there are %d progress comments in %d lives", len(o.progress), lives)
		return
	}
	last := o.progress[len(o.progress)-1]
	if !slices.ContainsFunc(headings[o.task.State], func(heading string) bool { return strings.HasPrefix(last, heading) }) {
		t.Errorf("the task is %s, and the progress comment says:\n%s", o.task.State, last)
	}
}

// checkPull checks the pull request: that there is one, or none, what it says, and
// what its branch has.
func (s *story) checkPull(t *testing.T, o outcome, as *strings.Replacer) {
	t.Helper()
	expect := s.Expect
	if expect.NoPull {
		if len(o.pulls) > 0 {
			t.Errorf("there is a pull request: %+v", o.pulls)
		}
		return
	}
	if len(expect.Pull) == 0 && len(expect.Files) == 0 {
		return
	}
	if len(o.pulls) != 1 {
		t.Errorf("there are %d pull requests, want 1", len(o.pulls))
		return
	}
	pull := o.pulls[0]
	contains(t, "the title", pull.Title, []string{expect.Title}, as)
	contains(t, "the description", pull.Body, expect.Pull, as)
	for _, text := range expect.NotPull {
		if strings.Contains(pull.Body, text) {
			t.Errorf("%q is in the description:\n%s", text, pull.Body)
		}
	}
	if pull.Draft != expect.Draft {
		t.Errorf("draft is %v, want %v", pull.Draft, expect.Draft)
	}
	dir := t.TempDir()
	_, err := git(t.Context(), "", "clone", "--quiet", "--branch", pull.Head, s.site.address(s.item.Repository), dir)
	must(t, err)
	for name, text := range expect.Files {
		contains(t, name+" of the branch", fileIn(dir, name), []string{text}, as)
	}
	for _, name := range expect.Absent {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("the branch has %s", name)
		}
	}
	history, err := git(t.Context(), dir, "log", "-p", "--format=full")
	must(t, err)
	for _, secret := range s.Secrets {
		if strings.Contains(history, secret) {
			t.Error("the history of the branch has a secret in it")
		}
	}
	s.checkReplies(t)
}

func (s *story) checkReplies(t *testing.T) {
	t.Helper()
	if s.Pull == nil {
		return
	}
	threads, err := s.site.look().ReviewThreads(t.Context(), s.item)
	must(t, err)
	for _, known := range s.Pull.Threads {
		for _, thread := range threads {
			if !strings.Contains(thread.Comments[0].Body, known.Body) {
				continue
			}
			want := s.Expect.Replies[known.ID]
			own := slices.DeleteFunc(slices.Clone(thread.Comments), func(c task.Comment) bool { return !c.By(s.site.bot()) })
			if answered := len(own) > 0; answered != (want != "") || answered && (!strings.Contains(own[0].Body, want) || len(own) > 1) {
				t.Errorf("the answers in the thread %s are %+v, want %q", known.ID, own, want)
			}
		}
	}
}

func fileIn(dir, name string) string {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return string(text)
}

// checkSecrets looks for secrets everywhere: in what people read, what the model was
// sent, the journal and the files of agents.
func (s *story) checkSecrets(t *testing.T, o outcome) {
	t.Helper()
	for _, secret := range s.Secrets {
		var journal strings.Builder
		for _, event := range o.events {
			journal.Write(event.Data)
		}
		for place, text := range map[string]string{"what people read": strings.Join(o.own, "\n"), "what the model was sent": o.asked, "the journal": journal.String()} {
			if strings.Contains(text, secret) {
				t.Errorf("%s has a secret in it", place)
			}
		}
	}
}

// fetching is how people are told to get what was kept.
var fetching = regexp.MustCompile(`git fetch (\S+) (\S+)`)

// checkKept does what the last comment says to get the work that was kept.
func (s *story) checkKept(t *testing.T, o outcome) {
	t.Helper()
	if o.task.State == task.Stopped {
		last := o.own[len(o.own)-1]
		if kept := strings.Contains(last, "kept as commit"); kept != (len(s.Expect.Kept) > 0) {
			t.Errorf("want %d files kept; the comment says: %s", len(s.Expect.Kept), last)
		}
	}
	if len(s.Expect.Kept) == 0 {
		return
	}
	address := s.house.urls[0] + "/git/" + string(o.task.ID) + ".git"
	ref := "refs/toryo/wip"
	if o.task.State == task.Stopped {
		found := fetching.FindStringSubmatch(o.own[len(o.own)-1])
		if found == nil {
			t.Errorf("the comment does not say how to get what was kept: %s", o.own[len(o.own)-1])
			return
		}
		address, ref = found[1], found[2]
	}
	dir := t.TempDir()
	with, err := url.Parse(address)
	must(t, err)
	with.User = url.UserPassword("tester", s.house.client.Token)
	for _, args := range [][]string{{"init", "--quiet"}, {"fetch", "--quiet", with.String(), ref}, {"checkout", "--quiet", "FETCH_HEAD"}} {
		_, err := git(t.Context(), dir, args...)
		must(t, err)
	}
	for name, text := range s.Expect.Kept {
		contains(t, "the kept "+name, fileIn(dir, name), []string{text}, strings.NewReplacer())
	}
}

func (s *story) checkSummary(t *testing.T, o outcome) {
	t.Helper()
	summary := ""
	for _, event := range o.events {
		if event.Kind == task.Summed {
			summary = entryOf(event).Text
		}
	}
	contains(t, "the summary", summary, s.Expect.Summary, strings.NewReplacer())
}

func contains(t *testing.T, what, text string, parts []string, as *strings.Replacer) {
	t.Helper()
	for _, part := range parts {
		if part = as.Replace(part); !strings.Contains(text, part) {
			t.Errorf("%s does not have %q:\n%s", what, part, text[:min(len(text), 800)])
		}
	}
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(want) > 0 && !slices.Equal(got, want) {
		t.Errorf("%s:\ngot  %s\nwant %s", what, strings.Join(got, " "), strings.Join(want, " "))
	}
}

// journal tells the journal in short lines.
func (s *story) journal(t *testing.T) string {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	events, err := s.house.store.EventsAfter(ctx, s.taskID(ctx), 0, 0)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, event := range events {
		data := string(event.Data)
		fmt.Fprintf(&b, "%d g%d %s %s %s\n", event.Position, event.Generation, event.At.Format("05.000"), event.Kind, data[:min(len(data), 200)])
	}
	return b.String()
}
