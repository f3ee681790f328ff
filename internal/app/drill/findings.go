package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// findings is what the installation says of itself afterwards.
type findings struct {
	tasks    []wire.Task
	journals map[string][]wire.Event // by task
	forge    Content
	writes   float64 // to the forge that wait
}

const (
	settleEvery = 3 * time.Second
	// looksAtOnce is how many requests there are at once when everything is looked at.
	looksAtOnce = 4
	pageOf      = 1000
	largest     = 64 << 20
	callWithin  = time.Minute
)

// settle waits until everything has ended, as long as something gets done, and looks.
func (s *site) settle(ctx context.Context) (found findings, err error) {
	last, at := -1, time.Now()
	for {
		ended, tasks, err := s.ended(ctx)
		if err == nil && ended == tasks && tasks >= len(s.issues) {
			found, err = s.look(ctx)
			if err == nil && (len(found.check(s.issues)) == 0 || slices.ContainsFunc(found.tasks, endedInVain)) {
				return found, nil // a task that has failed stays so
			}
		}
		if ended != last {
			last, at = ended, time.Now()
		}
		if time.Since(at) > s.drill.Settle {
			if found.tasks == nil {
				found, err = s.look(ctx)
			}
			return found, err
		}
		if err := lifecycle.Sleep(ctx, settleEvery); err != nil {
			return found, err
		}
	}
}

// ended counts the tasks, and those that have ended.
func (s *site) ended(ctx context.Context) (ended, all int, err error) {
	tasks, err := s.tasks(ctx)
	for _, t := range tasks {
		if task.State(t.State).Terminal() {
			ended++
		}
	}
	return ended, len(tasks), err
}

func (s *site) tasks(ctx context.Context) (all []wire.Task, err error) {
	for {
		after := ""
		if len(all) > 0 {
			after = all[len(all)-1].ID
		}
		var page wire.Tasks
		if err := s.get(ctx, fmt.Sprintf("/v1/tasks?limit=%d&after=%s", pageOf, after), &page); err != nil {
			return nil, err
		}
		all = append(all, page.Tasks...)
		if len(page.Tasks) < pageOf {
			return all, nil
		}
	}
}

// look asks for all that there is to know.
func (s *site) look(ctx context.Context) (found findings, err error) {
	if found.tasks, err = s.tasks(ctx); err != nil {
		return found, err
	}
	journals := make([][]wire.Event, len(found.tasks))
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(looksAtOnce)
	for i, t := range found.tasks {
		group.Go(func() (err error) {
			journals[i], err = s.journal(inGroup, t.ID)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return found, err
	}
	found.journals = map[string][]wire.Event{}
	for i, t := range found.tasks {
		found.journals[t.ID] = journals[i]
	}
	if found.writes, err = s.pendingWrites(ctx); err != nil {
		return found, err
	}
	found.forge, err = s.drill.Place.Look(ctx)
	return found, err
}

// pendingWrites is how many writes to the forge wait.
func (s *site) pendingWrites(ctx context.Context) (sum float64, err error) {
	numbers := readMetrics(ctx, &http.Client{Timeout: callWithin}, s.client.Server)
	for _, name := range []string{`toryo_forge_writes_pending{failed="no"}`, `toryo_forge_writes_pending{failed="yes"}`} {
		number, found := numbers[name]
		if !found {
			return 0, task.Errorf(task.Unavailable, "the server does not tell how many writes wait")
		}
		sum += number
	}
	return sum, nil
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
	return s.call(ctx, http.MethodGet, path, nil, into)
}

// call sends a request to the server of the client, on behalf of an operator. The server answers
// so many in a second: everything that there is to see after a long drill is more than that.
func (s *site) call(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return err
		}
	}
	for {
		status, said, err := s.send(ctx, method, path, content)
		switch {
		case err == nil && status == http.StatusTooManyRequests:
			if err := lifecycle.Sleep(ctx, time.Second); err != nil {
				return err
			}
			continue
		case err != nil:
			return task.Wrap(task.Unavailable, err, "the server does not answer "+path)
		case status >= http.StatusMultipleChoices:
			return task.Errorf(task.Unavailable, "the server answers %s with %d: %s", path, status, said)
		}
		return json.Unmarshal(said, into)
	}
}

func (s *site) send(ctx context.Context, method, path string, body []byte) (status int, said []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, s.client.Server+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+s.client.Token)
	request.Header.Set("X-Toryo-As", "toryo")
	answer, err := s.client.HTTP.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	said, err = io.ReadAll(io.LimitReader(answer.Body, largest))
	return answer.StatusCode, said, err
}

// check says what is not as it should be, if the forge has taken these issues.
// There may be more: an answer can be lost.
func (f findings) check(given []Item) []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	there := map[Item]bool{}
	for _, issue := range f.forge.Issues {
		there[issue.Item] = issue.Assigned
	}
	for _, issue := range given {
		if !there[issue] {
			say("issue %s is lost", issue)
		}
	}
	assigned, developed := 0, 0
	pulls := f.pullsOf()
	for _, issue := range f.forge.Issues {
		if issue.Assigned {
			assigned++
			checkIssue(issue, pulls[issue.Item], say)
		}
	}
	for _, t := range f.tasks {
		f.checkTask(t, say)
		if !isReview(t) {
			developed++
		}
	}
	if developed != assigned || len(f.forge.Pulls) != assigned {
		say("there are %d issues for the bot, %d tasks and %d pull requests", assigned, developed, len(f.forge.Pulls))
	}
	f.checkReviews(say)
	used := map[Branch]bool{}
	for _, pull := range f.forge.Pulls {
		used[Branch{pull.Repository, pull.Branch}] = true
	}
	for _, branch := range f.forge.Branches {
		if strings.HasPrefix(branch.Name, "toryo/") && !used[branch] {
			say("the branch %s is of no pull request of %s", branch.Name, branch.Repository)
		}
	}
	if f.writes > 0 {
		say("%.0f writes to the forge wait", f.writes)
	}
	return wrong
}

// pullsOf are the pull requests by the issues that they say they are for.
func (f findings) pullsOf() map[Item][]Pull {
	by := map[Item][]Pull{}
	for _, pull := range f.forge.Pulls {
		for _, issue := range pull.Issues {
			by[issue] = append(by[issue], pull)
		}
	}
	return by
}

func isReview(t wire.Task) bool { return t.Type == string(task.Review) }

// cameToNothing reports whether a task is without what it was for. A review that is stopped
// because the pull request has one already has it: its run was lost after it had written it.
func cameToNothing(t wire.Task) bool {
	if isReview(t) && t.State == string(task.Stopped) && t.Reason == string(task.ReasonReviewNotNeeded) {
		return false
	}
	return t.State != string(task.Done)
}

// endedInVain reports whether a task came to nothing and stays so. A review may have fallen due
// a moment ago.
func endedInVain(t wire.Task) bool { return task.State(t.State).Terminal() && cameToNothing(t) }

// checkTask checks that a task has ended once, or a review once for each commit that it was
// asked for, and that no run that was over has written into its journal.
func (f findings) checkTask(t wire.Task, say func(string, ...any)) {
	if cameToNothing(t) {
		say("%s is %s: %s", t.Item, t.State, t.Reason)
	}
	ends, asked, generation := 0, 0, int64(0)
	for i, event := range f.journals[t.ID] {
		if event.Position != int64(i)+1 {
			say("%s: entry %d of the journal has the position %d", t.Item, i+1, event.Position)
		}
		if event.Generation < generation {
			say("%s: generation %d wrote entry %d after generation %d had begun", t.Item, event.Generation, event.Position, generation)
		}
		generation = max(generation, event.Generation)
		change, is := changeOf(event)
		if is && change.To.Terminal() {
			ends++
		}
		if is && change.Trigger == task.Assigned {
			asked++
		}
	}
	if !isReview(t) {
		asked = 1
	}
	if ends != asked {
		say("%s has ended %d times", t.Item, ends)
	}
}

// checkReviews checks that no commit was reviewed twice, and that the last one of each pull request
// was.
func (f findings) checkReviews(say func(string, ...any)) {
	for _, pull := range f.forge.Pulls {
		times := map[string]int{}
		for _, commit := range pull.Reviews {
			if times[commit]++; times[commit] == 2 {
				say("pull request %s was reviewed twice at %s", pull.Item, commit)
			}
		}
		if times[pull.Head] == 0 {
			say("pull request %s has no review of its last commit", pull.Item)
		}
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
func checkIssue(issue Issue, pulls []Pull, say func(string, ...any)) {
	if add, remove := task.DefaultLabelNames().Change(issue.Labels, task.Done); len(add)+len(remove) > 0 {
		say("issue %s has the labels %q", issue.Item, issue.Labels)
	}
	told := 0
	for _, comment := range issue.Comments {
		if strings.Contains(comment, "The work is done") {
			told++
		}
	}
	if told != 1 {
		say("issue %s was said to be done %d times", issue.Item, told)
	}
	if len(pulls) != 1 {
		say("issue %s has %d pull requests", issue.Item, len(pulls))
	}
	for _, pull := range pulls {
		checkPull(issue, pull, say)
	}
}

func checkPull(issue Issue, pull Pull, say func(string, ...any)) {
	added := fmt.Sprintf("+task %d\n", issue.Number)
	if strings.Count(pull.Diff, "\n+") != 2 || !strings.Contains(pull.Diff, added) {
		say("pull request %s has another change than was asked for:\n%s", pull.Item, pull.Diff)
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
