package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// findings is what the installation says of itself afterwards.
type findings struct {
	tasks    []wire.Task
	journals map[string][]wire.Event // by task
	issues   []Issue
	pulls    []Pull
}

const (
	settleEvery = time.Second
	pageOf      = 1000
	largest     = 64 << 20
)

// settle waits until everything has ended, and looks.
func (s *site) settle(ctx context.Context, tasks int, within time.Duration) (findings, error) {
	deadline := time.Now().Add(within)
	ticker := time.NewTicker(settleEvery)
	defer ticker.Stop()
	for {
		found, err := s.look(ctx)
		if err == nil && len(found.check(tasks)) == 0 || time.Now().After(deadline) {
			return found, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return found, context.Cause(ctx)
		}
	}
}

// look asks for all that there is to know.
func (s *site) look(ctx context.Context) (found findings, err error) {
	var tasks wire.Tasks
	if err := s.get(ctx, "/v1/tasks?limit=1000", &tasks); err != nil {
		return found, err
	}
	found.tasks, found.journals = tasks.Tasks, map[string][]wire.Event{}
	for _, t := range tasks.Tasks {
		if found.journals[t.ID], err = s.journal(ctx, t.ID); err != nil {
			return found, err
		}
	}
	found.issues, found.pulls, err = s.drill.Place.Look(ctx)
	return found, err
}

func (s *site) journal(ctx context.Context, id string) (all []wire.Event, err error) {
	for {
		var after int64
		if len(all) > 0 {
			after = all[len(all)-1].Position
		}
		var page wire.Events
		if err := s.get(ctx, fmt.Sprintf("/v1/tasks/%s/events?after=%d&limit=%d", id, after, pageOf), &page); err != nil {
			return nil, err
		}
		all = append(all, page.Events...)
		if len(page.Events) < pageOf {
			return all, nil
		}
	}
}

func (s *site) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.client.Server+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.client.Token)
	request.Header.Set("X-Toryo-As", "toryo")
	answer, err := s.client.HTTP.Do(request)
	if err != nil {
		return task.Wrap(task.Unavailable, err, "the server does not answer")
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, largest))
	if err != nil || answer.StatusCode != http.StatusOK {
		return task.Wrap(task.Unavailable, fmt.Errorf("%s: %w %s", answer.Status, err, body), "the server does not answer "+path)
	}
	return json.Unmarshal(body, into)
}

// check says what is not as it should be.
func (f findings) check(tasks int) []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if len(f.tasks) != tasks || len(f.issues) != tasks {
		say("there are %d tasks and %d issues, and should be %d", len(f.tasks), len(f.issues), tasks)
	}
	for _, t := range f.tasks {
		f.checkTask(t, say)
	}
	for _, issue := range f.issues {
		f.checkIssue(issue, say)
	}
	if len(f.pulls) != tasks {
		say("there are %d pull requests, and should be %d", len(f.pulls), tasks)
	}
	return wrong
}

// checkTask checks that a task has ended once, and that no run that was over has
// written into its journal.
func (f findings) checkTask(t wire.Task, say func(string, ...any)) {
	if t.State != string(task.Done) {
		say("%s is %s: %s", t.Item, t.State, t.Reason)
	}
	ends, generation := 0, int64(0)
	for i, event := range f.journals[t.ID] {
		if event.Position != int64(i)+1 {
			say("%s: entry %d of the journal has the position %d", t.Item, i+1, event.Position)
		}
		if event.Generation < generation {
			say("%s: generation %d wrote entry %d after generation %d had begun", t.Item, event.Generation, event.Position, generation)
		}
		generation = max(generation, event.Generation)
		if change, is := changeOf(event); is && change.To.Terminal() {
			ends++
		}
	}
	if ends != 1 {
		say("%s has ended %d times", t.Item, ends)
	}
}

func changeOf(event wire.Event) (change task.StateChange, is bool) {
	if event.Kind != string(task.StateChanged) {
		return change, false
	}
	return change, json.Unmarshal(event.Data, &change) == nil
}

// checkIssue checks the labels of an issue, that it has one pull request with
// what was asked for, and that people were told once.
func (f findings) checkIssue(issue Issue, say func(string, ...any)) {
	if add, remove := task.DefaultLabelNames().Change(issue.Labels, task.Done); len(add)+len(remove) > 0 {
		say("issue %d has the labels %q", issue.Number, issue.Labels)
	}
	told := 0
	for _, comment := range issue.Comments {
		if strings.Contains(comment, "The work is done") {
			told++
		}
	}
	if told != 1 {
		say("issue %d was said to be done %d times", issue.Number, told)
	}
	linked := 0
	for _, pull := range f.pulls {
		if slices.Contains(pull.Issues, issue.Number) {
			linked++
			checkPull(issue, pull, say)
		}
	}
	if linked != 1 {
		say("issue %d has %d pull requests", issue.Number, linked)
	}
}

func checkPull(issue Issue, pull Pull, say func(string, ...any)) {
	added := fmt.Sprintf("+task %d\n", issue.Number)
	if strings.Count(pull.Diff, "\n+") != 2 || !strings.Contains(pull.Diff, added) {
		say("pull request %d has another change than was asked for:\n%s", pull.Number, pull.Diff)
	}
}

func (f findings) inState(state task.State) (count int) {
	for _, t := range f.tasks {
		if t.State == string(state) {
			count++
		}
	}
	return count
}

func (f findings) moved(trigger task.Trigger) (count int) {
	for _, journal := range f.journals {
		for _, event := range journal {
			if change, is := changeOf(event); is && change.Trigger == trigger {
				count++
			}
		}
	}
	return count
}

func (f findings) runs() int { return f.moved(task.Claimed) }

func (f findings) entries() (count int) {
	for _, journal := range f.journals {
		count += len(journal)
	}
	return count
}
