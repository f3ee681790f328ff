package endtoend

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// story is a scenario that happens in a house.
type story struct {
	*phasetest.Scenario
	house *house
	site  site
	item  task.Key
	issue task.Key // that the item belongs to, if that is a pull request of the bot
	main  string   // the commit that main has to have
	model *script.Server

	mutex    sync.Mutex // one thing happens at a time
	fired    map[int]bool
	runs     int               // that have begun
	last     int64             // generation of the run that began last
	entries  int               // of the journal, over all runs
	followed int               // how many of the last of them are, see [phase.Entry.Followed]
	present  int64             // comments that were there at the start, those in reviews included
	said     int64             // versions of comments that runs are told of, those included
	ids      map[string]string // of comments, as the forge has them
	threads  map[string]string // the same of review threads
	authors  map[string]string
	spoken   []spoken // new comments of people during runs, in order
	handed   bool     // the work is handed over; comments are too late
	crashed  bool
	agent    string // that has the last run
	away     string // the agent that is, if any
}

// spoken is what somebody said, and whether it was too late.
type spoken struct {
	body   string
	handed bool
}

// runStory lets a scenario happen from its beginning to its end, and checks it.
func (h *house) runStory(t *testing.T, at site, scenario *phasetest.Scenario) *story {
	t.Helper()
	s := h.begin(t, at, scenario)
	s.seeThrough(t)
	s.check(t)
	if t.Failed() {
		t.Log(s.journal(t))
	}
	return s
}

// begin begins a scenario.
func (h *house) begin(t *testing.T, at site, scenario *phasetest.Scenario) *story {
	t.Helper()
	s := &story{
		Scenario: scenario, house: h, site: at,
		fired: map[int]bool{}, ids: map[string]string{}, threads: map[string]string{}, authors: map[string]string{},
	}
	must(t, s.prepare(t.Context()))
	s.model = script.NewServer(scenario.Script)
	must(t, at.assign(t.Context(), s.item, true))
	return s
}

// prepare makes the repository and the item, with all that is there at the start.
func (s *story) prepare(ctx context.Context) error {
	source, err := os.MkdirTemp("", "scenario")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(source) }()
	if _, err := git(ctx, "", "init", "--quiet", "--bare", "--initial-branch=main", source); err != nil {
		return err
	}
	if s.main, err = commit(ctx, source, "main", s.Files); err != nil {
		return err
	}
	if len(s.Branch) > 0 {
		if _, err := commit(ctx, source, taskBranch, s.Branch); err != nil {
			return err
		}
	}
	repository, err := s.site.repository(ctx, s.Name, source)
	if err != nil {
		return err
	}
	s.house.mutex.Lock()
	s.house.stories[repository] = s
	s.house.mutex.Unlock()
	if s.item, err = s.site.open(ctx, repository, s.Author.Login, s.Scenario); err != nil {
		return err
	}
	if err := s.knowThreads(ctx); err != nil {
		return err
	}
	for i, comment := range s.Comments {
		s.present++
		id := fmt.Sprint("s", i+1)
		if s.ids[id], err = s.site.addComment(ctx, s.item, comment.Author, comment.Body); err != nil {
			return err
		}
		s.authors[id] = comment.Author
	}
	s.said = s.present
	return nil
}

// knowThreads lets the model call the review threads by the names that they have on
// the forge.
func (s *story) knowThreads(ctx context.Context) error {
	if s.Pull == nil {
		return nil
	}
	reviews, err := s.site.look().Reviews(ctx, s.item)
	if err != nil {
		return err
	}
	threads, err := s.site.look().ReviewThreads(ctx, s.item)
	s.present += int64(len(forge.ReviewTexts(reviews)) + len(forge.ReviewComments(threads)))
	for _, known := range s.Pull.Threads {
		for _, thread := range threads {
			if !strings.Contains(thread.Comments[0].Body, known.Body) {
				continue
			}
			s.threads[known.ID] = thread.ID
			for i := range s.Script.Rules {
				answer := &s.Script.Rules[i].Answer
				answer.Text = strings.ReplaceAll(answer.Text, `"`+known.ID+`"`, `"`+thread.ID+`"`)
			}
		}
	}
	return err
}

// decide returns what the run has to wait for at a moment.
func (s *story) decide(ctx context.Context, at moment) (instruction, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	said := instruction{Equipment: s.Setting}
	if at.Kind == "" {
		if at.Generation != s.last {
			s.runs++
			s.last = at.Generation
		}
		if s.away != "" {
			s.house.start(s.away)
		}
		s.agent, s.away = at.Agent, ""
		s.entries, s.followed = s.entries-s.followed, 0 // they may be lost
		err := s.fire(ctx, &said, func(when phasetest.When) bool { return when.Start && (when.Run == 0 || when.Run == s.runs) })
		return said, err
	}
	s.entries++
	if s.followed++; !at.Followed {
		s.followed = 0
	}
	s.handed = s.handed || at.Kind == task.Summed
	err := s.fire(ctx, &said, func(when phasetest.When) bool { return when.Fits(s.runs, s.entries, at.Kind, at.Entry) })
	return said, err
}

// asked is told that the model was asked from a phase.
func (s *story) asked(ctx context.Context, from task.Phase) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.fire(ctx, new(instruction), func(when phasetest.When) bool {
		return when.Asked != "" && when.Asked == from && (when.Run == 0 || when.Run == s.runs)
	})
}

// fire lets the events happen that are due and have not happened.
func (s *story) fire(ctx context.Context, said *instruction, due func(phasetest.When) bool) error {
	for i, event := range s.Events {
		if s.fired[i] || !due(event.When) {
			continue
		}
		s.fired[i] = true
		if event.Late {
			s.house.later(func(ctx context.Context) error {
				s.mutex.Lock()
				defer s.mutex.Unlock()
				err := s.happen(ctx, event, new(instruction))
				is, unknown := s.house.store.TaskOf(ctx, s.item, task.Development)
				if task.CodeOf(err) == task.IllegalMove && unknown == nil && is.State.Terminal() {
					return nil // it came too late
				}
				return err
			})
			continue
		}
		if err := s.happen(ctx, event, said); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
	}
	return nil
}

// happen makes an event so.
func (s *story) happen(ctx context.Context, event phasetest.Event, said *instruction) error {
	if err := awaitCommand(ctx, event.Running); err != nil {
		return err
	}
	s.site.mute(s.item.Repository, event.Mute)
	for _, comment := range event.Comments {
		for range max(comment.Times, 1) {
			if err := s.speak(ctx, comment); err != nil {
				return err
			}
		}
		said.Comments = s.said
	}
	if len(event.Base) > 0 {
		head, err := commit(ctx, s.site.address(s.item.Repository), "main", event.Base)
		if err != nil {
			return err
		}
		s.main = head
	}
	if event.Signal != "" {
		said.Halt = true
		if err := s.signal(ctx, event); err != nil {
			return err
		}
	}
	if event.Unassign {
		if err := s.site.assign(ctx, s.item, false); err != nil {
			return err
		}
	}
	if event.Assign {
		if err := s.assignAgain(ctx); err != nil {
			return err
		}
	}
	if event.Away {
		s.away = s.agent
		s.house.stop(s.away)
	}
	if event.Do != nil {
		if err := event.Do(ctx); err != nil {
			return err
		}
	}
	if event.Restart {
		if err := s.house.restartServers(ctx); err != nil {
			return err
		}
	}
	if event.Crash {
		said.Die, s.crashed = true, true
		if !event.Hasty {
			return s.reported(ctx)
		}
	}
	return nil
}

// reported waits until the server has all entries of the journal, but for the last ones if they are
// followed: it gets them with the next. What only a dead machine has is not known elsewhere, and may
// be or not be there.
func (s *story) reported(ctx context.Context) error {
	for {
		events, err := s.house.store.EventsAfter(ctx, s.taskID(ctx), 0, 0)
		if err != nil {
			return err
		}
		events = slices.DeleteFunc(events, func(event task.Event) bool { return event.Source != task.FromAgent })
		if len(events) >= s.entries-s.followed {
			return nil
		}
		if !pause(ctx) {
			return context.Cause(ctx)
		}
	}
}

// assignAgain puts the bot on the item when the server knows that it was taken off.
func (s *story) assignAgain(ctx context.Context) error {
	for {
		is, err := s.house.store.TaskOf(ctx, s.item, task.Development)
		if err != nil {
			return err
		}
		if is.Released {
			return s.site.assign(ctx, s.item, true)
		}
		if !pause(ctx) {
			return context.Cause(ctx)
		}
	}
}

// speak lets somebody say something, or change or take back what they said.
func (s *story) speak(ctx context.Context, comment phasetest.Comment) (err error) {
	if comment.Author == "bot" {
		_, err = s.site.addComment(ctx, s.item, s.site.bot(), comment.Body)
		return err
	}
	s.said++
	id := comment.ID
	if id == "" {
		id = fmt.Sprint("c", s.said-s.present)
	}
	switch comment.Change {
	case "edited":
		return s.site.edit(ctx, s.item, s.authors[id], s.ids[id], comment.Body)
	case "deleted":
		return s.site.remove(ctx, s.item, s.authors[id], s.ids[id])
	}
	s.authors[id] = comment.Author
	s.spoken = append(s.spoken, spoken{comment.Body, s.handed})
	path, line, _ := strings.Cut(comment.Line, ":")
	number, _ := strconv.Atoi(line) // a line that is none is none of the diff
	switch {
	case comment.Reply != "":
		s.ids[id], err = s.site.reply(ctx, s.item, comment.Author, s.threads[comment.Reply], comment.Body)
	case comment.Review != "" || comment.Line != "":
		verdict := cmp.Or(comment.Review, string(forge.Remark))
		s.ids[id], err = s.site.review(ctx, s.item, comment.Author, verdict, comment.Body, wire.BoardLine{Path: path, Line: number})
	default:
		s.ids[id], err = s.site.addComment(ctx, s.item, comment.Author, comment.Body)
	}
	return err
}

// pauseFile pauses everything in the house while it is there.
func (h *house) pauseFile() string { return filepath.Join(h.data(0), "contexts", "pause_signal") }

// pauseFileOf pauses the tasks of an agent while it is there.
func (h *house) pauseFileOf(agent string) string {
	return filepath.Join(h.dir, agent, "contexts", "pause_signal")
}

// signal stops or pauses the task in the way that the event says.
func (s *story) signal(ctx context.Context, event phasetest.Event) error {
	id := s.taskID(ctx)
	switch {
	case event.By == "file":
		return errors.Join(os.MkdirAll(filepath.Dir(s.house.pauseFile()), 0o700), os.WriteFile(s.house.pauseFile(), nil, 0o600))
	case event.By == "agent file":
		return os.WriteFile(s.house.pauseFileOf(s.agent), nil, 0o600)
	case event.By == "issue":
		return s.site.assign(ctx, s.issue, false)
	case event.By == "close":
		return s.site.close(ctx, s.item)
	case event.By == "command":
		_, err := s.house.client.StopTask(ctx, id)
		return err
	case event.Signal == task.SignalPause:
		_, err := s.house.client.PauseTask(ctx, id)
		return err
	default:
		return s.site.assign(ctx, s.item, false)
	}
}

func (s *story) taskID(ctx context.Context) task.ID {
	is, err := s.house.store.TaskOf(ctx, s.item, task.Development)
	if err != nil {
		return ""
	}
	return is.ID
}

// await waits until the task is as it should be, and what there was to say about
// that is said.
func (s *story) await(t *testing.T, what string, good func(task.Task) bool) task.Task {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var is task.Task
	for {
		var err error
		if is, err = s.house.store.TaskOf(ctx, s.item, task.Development); err == nil && good(is) {
			break
		}
		if !pause(ctx) {
			t.Fatalf("the task is not %s but %s (%s) after %d runs, %v\n%s", what, is.State, is.Reason, s.runs, err, s.journal(t))
		}
	}
	s.settle(ctx, t, true)
	return is
}

// settle waits until everything is said; the newest text of the progress comment, to
// which nothing else waits either, only if it is wanted.
func (s *story) settle(ctx context.Context, t *testing.T, butProgress bool) {
	t.Helper()
	for {
		waiting, err := s.house.store.PendingActions(ctx, s.item)
		if butProgress {
			waiting = slices.DeleteFunc(waiting, func(action store.Action) bool { return action.Kind == outbox.Progress{}.Kind() })
		}
		if err == nil && len(waiting) == 0 {
			return
		}
		if !pause(ctx) {
			t.Fatalf("the forge was not told: %+v, %v", waiting, err)
		}
	}
}

// seeThrough lets the task go on until it has ended and nothing more is to happen.
func (s *story) seeThrough(t *testing.T) {
	t.Helper()
	rested := 0 // runs that there were at the last pause
	for {
		is := s.await(t, "at rest", func(is task.Task) bool { return is.State.Terminal() || is.State == task.Paused })
		if s.runs > rested { // else it was stopped while it was paused, and no agent knows of it
			s.awaitFolder(t, is)
		}
		rested = s.runs
		over := func(when phasetest.When) bool { return when.Over && (when.Run == 0 || when.Run == s.runs) }
		if is.State == task.Paused {
			s.goOn(t, is)
		} else if !s.more(t, over) {
			return
		}
		s.await(t, "going on", func(now task.Task) bool {
			return now.Generation != is.Generation || now.State.Terminal() && is.State == task.Paused
		})
	}
}

// more lets happen what is due while no run goes on, and reports whether there was
// anything.
func (s *story) more(t *testing.T, due func(phasetest.When) bool) bool {
	t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	before := len(s.fired)
	must(t, s.fire(t.Context(), new(instruction), due))
	return len(s.fired) > before
}

// goOn lets a paused task go on: by what happens next, and else because somebody says
// so.
func (s *story) goOn(t *testing.T, is task.Task) {
	t.Helper()
	said := s.said
	acted := s.more(t, func(when phasetest.When) bool { return when.Start && when.Run == s.runs+1 })
	switch now := s.await(t, "there", func(task.Task) bool { return true }); {
	case is.Reason == task.ReasonAllPaused:
		must(t, os.Remove(s.house.pauseFile()))
	case is.Reason == task.ReasonAgentPaused:
		must(t, os.Remove(s.house.pauseFileOf(s.agent)))
	case is.Reason == task.ReasonAwaitingAnswer && s.said > said: // that is the answer
	case is.Reason == task.ReasonAwaitingApproval && acted: // so is what was done
	case acted && now.State.Terminal():
	case acted && s.unassigned(t): // it will be
	default:
		_, err := s.house.client.ResumeTask(t.Context(), is.ID)
		must(t, err)
	}
}

// unassigned reports whether the bot is not on the item, or the item is closed.
func (s *story) unassigned(t *testing.T) bool {
	t.Helper()
	item, err := s.site.look().Item(t.Context(), s.item)
	must(t, err)
	return item.State != "open" || !slices.ContainsFunc(item.Assignees, func(login string) bool { return strings.EqualFold(login, s.site.bot()) })
}

// awaitFolder waits until the context files of a run that has ended or is paused are
// where they belong, on the machine of its agent.
func (s *story) awaitFolder(t *testing.T, is task.Task) {
	t.Helper()
	if s.runs == 0 {
		return // nobody has worked on it
	}
	folder := contexts.Completed
	if is.State == task.Paused {
		folder = contexts.Paused
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		found := s.folders(is)
		if slices.Contains(found, folder) && (s.crashed || !slices.Contains(found, contexts.Running)) {
			return
		}
		if !pause(ctx) {
			t.Fatalf("the task is %s, and its context files are in %v", is.State, found)
		}
	}
}

// folders are those in which agents have the context files of the task.
func (s *story) folders(is task.Task) []string {
	var found []string
	files, _ := filepath.Glob(filepath.Join(s.house.dir, "agent*", "contexts", "*", "*", "metadata.json")) // the pattern is good
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it is being moved
		}
		var run contexts.Metadata
		if json.Unmarshal(text, &run) == nil && run.Task == is.ID && run.Generation >= is.FirstGeneration {
			found = append(found, filepath.Base(filepath.Dir(filepath.Dir(file))))
		}
	}
	return found
}
