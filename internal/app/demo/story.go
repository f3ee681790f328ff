package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Person is someone on the board.
type Person interface {
	forge.Reader
	forge.Reviewer
	CreateIssue(ctx context.Context, repository string, issue forge.NewIssue) (forge.Item, error)
	AddComment(ctx context.Context, key task.Key, body string) (task.Comment, error)
	Import(ctx context.Context, name, source string) (forge.Repository, error)
}

// Journal is where the story sees how tasks are getting on.
type Journal interface {
	TaskOf(ctx context.Context, key task.Key, kind task.Type) (task.Task, error)
	EventsAfter(ctx context.Context, id task.ID, position int64, limit int) ([]task.Event, error)
	ListBoardItems(ctx context.Context, filter store.BoardFilter) ([]store.BoardItem, error)
}

// Story is the demo from beginning to end.
type Story struct {
	Person  Person
	Journal Journal
	Bot     string
	// ReviewLabel is what the pull request waits for a review with.
	ReviewLabel string
	Print       func(Scene) error
	Now         func() time.Time
	// Waits says why nobody takes a task that waits; it is empty if there is no
	// reason.
	Waits func(ctx context.Context) (string, error)

	printed time.Time // when something was printed last
}

// Scene is one thing that happens.
type Scene struct {
	At   time.Duration `json:"-"`
	Kind string        `json:"kind"` // for programs
	Text string        `json:"text"` // for people
	Data any           `json:"data,omitempty"`
}

// lookEvery is how often the story looks at what has happened.
const lookEvery = 100 * time.Millisecond

// printEvery is how long nothing is printed before the story says that it goes on.
const printEvery = 10 * time.Second

// Play lets the story happen, and returns when the pull request was reviewed.
func (s *Story) Play(ctx context.Context) error {
	issue, err := s.begin(ctx)
	if err != nil {
		return err
	}
	if err := s.follow(ctx, issue.Key); err != nil {
		return err
	}
	pull, err := s.showPull(ctx)
	if err != nil {
		return err
	}
	return s.review(ctx, pull)
}

// begin puts the repository and the issue on the board.
func (s *Story) begin(ctx context.Context) (item forge.Item, err error) {
	folder, err := os.MkdirTemp("", "toryo-demo-project-")
	if err != nil {
		return forge.Item{}, task.Wrap(task.DataDir, err, "the sample repository cannot be written")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := writeProject(ctx, folder); err != nil {
		return forge.Item{}, err
	}
	if _, err := s.Person.Import(ctx, Repository, folder); err != nil {
		return forge.Item{}, err
	}
	if err := s.record("repository", nil, "A repository with a failing test is on the board: %s", Repository); err != nil {
		return forge.Item{}, err
	}
	title, body, _ := strings.Cut(issue, "\n")
	item, err = s.Person.CreateIssue(ctx, Repository, forge.NewIssue{Title: title, Body: strings.TrimSpace(body), Assignees: []string{s.Bot}})
	if err != nil {
		return forge.Item{}, err
	}
	return item, s.record("issue", map[string]any{"item": item.Key.String(), "url": item.URL}, "Issue #%d, %q, is assigned to %s", item.Key.Number, item.Title, s.Bot)
}

// follow shows the journal of the task until it has ended, and comments when the
// work is under way.
func (s *Story) follow(ctx context.Context, key task.Key) error {
	var position int64
	commented := false
	for {
		current, err := s.Journal.TaskOf(ctx, key, task.Development)
		if err != nil && task.CodeOf(err) != task.NotFound {
			return err
		}
		if current.ID != "" {
			if position, err = s.show(ctx, current.ID, position); err != nil {
				return err
			}
		}
		if !commented && current.Phase == task.Execution {
			commented = true
			if err := s.interrupt(ctx, key); err != nil {
				return err
			}
		}
		switch current.State {
		case task.Done:
			return nil
		case task.Failed, task.Stopped, task.Paused:
			return ended(current)
		}
		if err := s.pause(ctx, current); err != nil {
			return err
		}
	}
}

// interrupt comments on the issue in the middle of the work.
func (s *Story) interrupt(ctx context.Context, key task.Key) error {
	said := strings.TrimSpace(comment)
	if _, err := s.Person.AddComment(ctx, key, said); err != nil {
		return err
	}
	return s.record("comment", nil, "Hanako comments on the issue: %q", said)
}

// ended is the error of a task that will not be done.
func ended(t task.Task) error {
	return task.Errorf(task.Internal, "the task is %s: %s", t.State, messages.Reason(task.English, t.Reason))
}

// pause waits a little. When nothing has happened for long it says what is waited
// for.
func (s *Story) pause(ctx context.Context, current task.Task) error {
	if err := s.printWaiting(ctx, current); err != nil {
		return err
	}
	return lifecycle.Sleep(ctx, lookEvery)
}

func (s *Story) printWaiting(ctx context.Context, current task.Task) error {
	if s.Now().Sub(s.printed) < printEvery {
		return nil
	}
	since := s.Now().Sub(current.UpdatedAt).Round(time.Second)
	switch current.State {
	case task.Running:
		return s.record("wait", nil, "   … %s, for %s so far", strings.ToLower(current.Phase.DisplayName()), since)
	case task.Queued:
		why, err := s.Waits(ctx)
		if err != nil {
			return err
		}
		if why != "" {
			return s.record("wait", nil, "   … %s", why)
		}
	}
	return s.record("wait", nil, "   … waiting for an agent")
}

// show prints what the journal says since the position.
func (s *Story) show(ctx context.Context, id task.ID, position int64) (int64, error) {
	events, err := s.Journal.EventsAfter(ctx, id, position, 0)
	if err != nil {
		return position, err
	}
	for _, event := range events {
		position = event.Position
		if event.Source != task.FromAgent {
			continue
		}
		var entry phase.Entry
		if err := json.Unmarshal(event.Data, &entry); err != nil {
			return position, task.Wrap(task.Internal, err, "an entry of the journal cannot be read")
		}
		if text := sceneOf(event.Kind, entry); text != "" {
			if err := s.record(string(event.Kind), entry, "%s", text); err != nil {
				return position, err
			}
		}
		if event.Kind == task.Prepared && !entry.Setup.Handover.EnvironmentReady {
			return position, notPrepared(*entry.Setup)
		}
	}
	return position, nil
}

// sceneOf is an entry in words, or nothing if it is not worth any.
func sceneOf(kind task.EventKind, entry phase.Entry) string {
	switch kind {
	case task.PhaseChanged:
		if entry.Status == phase.PhaseActive && entry.Phase == task.EnvironmentSetup {
			return "== " + entry.Phase.DisplayName() + "\n   the first tests take a while: Go compiles its standard library in the sandbox"
		}
		if entry.Status == phase.PhaseActive {
			return "== " + entry.Phase.DisplayName()
		}
	case task.Planned:
		if entry.Plan.Revision > 1 || entry.Plan.Begun() {
			return "" // a new version of it, or one more action is done
		}
		lines := []string{"   the plan:"}
		for _, action := range entry.Plan.ActionPlan.Actions {
			lines = append(lines, "     - "+action.What)
		}
		return strings.Join(lines, "\n")
	case task.Prepared:
		return receiptText(*entry.Setup)
	case task.ToolCalled:
		return callText(entry)
	case task.SignalTaken:
		if entry.Signal != nil && entry.Signal.Signal == task.SignalComments {
			return fmt.Sprintf("   comments included at step %d: %d", entry.Step, len(entry.Signal.Comments))
		}
	case task.Saved:
		return "   work in progress saved as " + textfmt.ShortCommit(entry.Commit)
	}
	return ""
}

func receiptText(setup phase.SetupEntry) string {
	text := fmt.Sprintf("   the environment %s is ready in a sandbox of %s", setup.Handover.EnvironmentName, setup.Receipt.Sandbox)
	if !setup.Handover.EnvironmentReady {
		return ""
	}
	if baseline := setup.Receipt.Baseline; baseline != nil {
		text += fmt.Sprintf("\n   before any change, %q ends with %d; failing: %s", baseline.Command, baseline.ExitCode, strings.Join(baseline.Failing, ", "))
	}
	return text
}

// notPrepared is the error of an environment that could not be set up: without it
// there is no test to see.
func notPrepared(setup phase.SetupEntry) error {
	err := task.Errorf(task.NotReady, "the environment %s could not be set up in the sandbox", setup.Handover.EnvironmentName)
	if failures := setup.Handover.Errors; len(failures) > 0 {
		last := failures[len(failures)-1]
		err.Message += ": " + textfmt.OneLine(last.Message+" "+last.Log)
	}
	return err.WithHint("see what toryo doctor says")
}

func callText(entry phase.Entry) string {
	if entry.Call == nil || entry.Result == nil {
		return ""
	}
	first, _, _ := strings.Cut(strings.TrimSpace(entry.Result.Text), "\n")
	if strings.HasPrefix(first, "<") { // quoted text begins with its origin
		first = ""
	}
	if len(first) > 100 {
		first = first[:100] + "…"
	}
	return strings.TrimRight(fmt.Sprintf("   %-7s %s", entry.Call.Name, first), " ")
}

// showPull shows the pull request that the run has opened.
func (s *Story) showPull(ctx context.Context) (task.Key, error) {
	pulls, err := s.Journal.ListBoardItems(ctx, store.BoardFilter{Repository: Repository, Kind: task.Pull})
	if err != nil {
		return task.Key{}, err
	}
	if len(pulls) != 1 {
		return task.Key{}, task.Errorf(task.Internal, "there are %d pull requests where one was expected", len(pulls))
	}
	pull := pulls[0]
	key := task.Key{Forge: task.Board, Repository: Repository, Kind: task.Pull, Number: pull.Number}
	if err := s.record("pull", map[string]any{"item": key.String(), "title": pull.Title, "body": pull.Body}, "\nPull request #%d: %s\n\n%s", pull.Number, pull.Title, indent(pull.Body)); err != nil {
		return key, err
	}
	diff, err := s.Person.Diff(ctx, key)
	if err != nil {
		return key, err
	}
	return key, s.record("diff", diff.Patch, "\nIts diff:\n\n%s", indent(diff.Patch))
}

func indent(text string) string {
	return "   | " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n   | ")
}

// review waits for the review: the bot has put the label on that asks for one.
func (s *Story) review(ctx context.Context, pull task.Key) error {
	if err := s.record("label", nil, "\nThe pull request waits for a review (label %s)", s.ReviewLabel); err != nil {
		return err
	}
	for {
		reviews, err := s.Person.Reviews(ctx, pull)
		if err != nil {
			return err
		}
		if len(reviews) > 0 {
			review := reviews[0]
			return s.record("review", map[string]any{"verdict": review.Verdict, "body": review.Body}, "%s reviews it: %s\n\n%s", review.Author, review.Verdict, indent(forge.StripMarker(review.Body)))
		}
		current, err := s.Journal.TaskOf(ctx, pull, task.Review)
		if err != nil && task.CodeOf(err) != task.NotFound {
			return err
		}
		switch current.State {
		case task.Failed, task.Stopped, task.Paused:
			return ended(current)
		}
		if err := s.pause(ctx, current); err != nil {
			return err
		}
	}
}

func (s *Story) record(kind string, data any, format string, args ...any) error {
	s.printed = s.Now()
	return s.Print(Scene{Kind: kind, Text: fmt.Sprintf(format, args...), Data: data})
}
