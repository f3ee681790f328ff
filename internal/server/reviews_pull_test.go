package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// loud is a forge that says when it was written to.
type loud struct {
	forge.Forge
	written chan string
}

func (l loud) SubmitReview(ctx context.Context, key task.Key, post forge.ReviewPost) (forge.Review, error) {
	made, err := l.Forge.SubmitReview(ctx, key, post)
	l.written <- fmt.Sprint("review ", err)
	return made, err
}

func (l loud) Reply(ctx context.Context, key task.Key, thread string, post forge.Post) (task.Comment, error) {
	made, err := l.Forge.Reply(ctx, key, thread, post)
	l.written <- fmt.Sprint("reply ", err)
	return made, err
}

const pullScript = `
rules:
  - name: judge
    when: {system: submit_review}
    answer:
      calls:
        - name: submit_review
          arguments:
            verdict: request_changes
            overall_review: "Two is shouted."
            weaknesses: [{text: "Too loud.", paragraph_numbers: ["1"], line: "2"}]
  - name: busy
    times: 2
    when: {last: "later"}
    answer: {error: {status: 529}}
  - name: never
    when: {last: "never"}
    answer: {error: {status: 529}}
  - name: answer
    answer: {text: "See §1 \"TWO\" and §7. README.md:2@${1} too."}
`

// pullHouse is a server with a board, a sender and a review service, put together
// as the program does it.
type pullHouse struct {
	boardHouse
	forge     loud
	service   *review.Service
	model     *script.Model
	snapshots *items.Snapshots
	pull      task.Key
}

func newPullHouse(t *testing.T) *pullHouse {
	t.Helper()
	h := &pullHouse{boardHouse: newBoardHouse(t)}
	must(t, h.board.AddUser(t.Context(), "toryo", forge.WriteAccess))
	h.forge = loud{h.board.As("toryo"), make(chan string, 100)}
	forges := map[task.Forge]forge.Forge{task.Board: h.forge}
	h.snapshots = items.NewSnapshots(map[task.Forge]forge.Reader{task.Board: h.forge}, items.DefaultAges, nil)
	t.Cleanup(h.snapshots.Stop)
	sender := outbox.NewSender(outbox.SenderOptions{Outbox: h.store, Tasks: h.store, Forges: forges, Snapshots: h.snapshots, Log: slog.New(slog.DiscardHandler)})
	sender.Start(t.Context())
	t.Cleanup(func() { sender.Stop(context.WithoutCancel(t.Context())) })
	parsed, err := script.Parse("pull.yaml", []byte(pullScript))
	must(t, err)
	h.model = script.NewModel(parsed, llm.Endpoint{})
	h.service = h.newService(t, forges, sender.Wake)
	h.server.registerReviews(h.service)

	h.push(t, "README.md", "one\nTWO\nthree\n")
	pull := call[wire.BoardItem](t, h.boardHouse, 201, request{who: "alice", method: post, path: "/team/app/pulls", body: wire.NewBoardPull{Title: "Write two large", Head: "topic"}})
	h.pull = task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Pull, Number: pull.Number}
	return h
}

func (h *pullHouse) newService(t *testing.T, forges map[task.Forge]forge.Forge, wake func()) *review.Service {
	t.Helper()
	readers := map[task.Forge]forge.Reader{}
	for name, one := range forges {
		readers[name] = one
	}
	steering := &items.Steering{Access: items.NewRights(readers, time.Now).Access, Log: slog.New(slog.DiscardHandler)}
	service := review.New(review.Options{
		Store: h.store, Forges: forges, Pulls: h.snapshots, Steering: steering, Wake: wake, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Model: func(review.Purpose) (llm.Model, error) { return h.model, nil },
	})
	t.Cleanup(service.Stop)
	return service
}

// review has the pull request judged and hands that in, as a review task does.
func (h *pullHouse) review(t *testing.T) store.Review {
	t.Helper()
	diff, err := h.forge.Diff(t.Context(), h.pull)
	must(t, err)
	paper, err := judge.PullPaper(judge.Pull{Title: "Write two large", Commit: diff.Head, Diff: diff.Patch})
	must(t, err)
	judged, err := judge.Judge{Model: h.model}.Judge(t.Context(), paper)
	must(t, err)
	report := judged.Report(paper)
	handedIn := wire.ReviewResult{
		Commit: report.Commit, Question: report.Question, Answer: report.Answer, Judgement: report.Judgement, Verdict: report.Verdict, Text: report.Text,
	}
	for _, c := range report.Comments {
		handedIn.Comments = append(handedIn.Comments, wire.LineComment{Path: c.Path, Line: c.Line, Old: c.Old, Text: c.Text})
	}
	stored, err := h.service.Reviewed(t.Context(), h.pull, reportOf(handedIn))
	must(t, err)
	return stored
}

func (h *pullHouse) wrote(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-h.forge.written:
		if got != want {
			t.Fatalf("written %q, want %q", got, want)
		}
	case <-t.Context().Done():
		t.Fatal("nothing was written")
	}
}

func TestPullIsReviewedOnce(t *testing.T) {
	t.Parallel()
	h := newPullHouse(t)
	first := h.review(t)
	h.wrote(t, "review <nil>")
	reviews, err := h.forge.Reviews(t.Context(), h.pull)
	must(t, err)
	threads, err := h.forge.ReviewThreads(t.Context(), h.pull)
	must(t, err)
	if len(reviews) != 1 || reviews[0].Verdict != forge.RequestChanges || !strings.Contains(reviews[0].Body, "Two is shouted.") ||
		len(threads) != 1 || threads[0].Anchor != (forge.Anchor{Path: "README.md", Side: forge.NewSide, Line: 2}) || threads[0].Comments[0].Body != "Too loud." {
		t.Fatalf("the forge has %+v and %+v", reviews, threads)
	}
	// The same head commit again, also by many at once, is the same review.
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if again := h.review(t); again.ID != first.ID {
				t.Errorf("reviewed again as %s, want %s", again.ID, first.ID)
			}
		})
	}
	group.Wait()
	pending, err := h.store.PendingActions(t.Context(), h.pull)
	if err != nil || len(pending) != 0 {
		t.Errorf("still to be written: %+v, %v", pending, err)
	}
	// Everyone can see it, and the listing finds it by the pull request.
	listed := h.reviewsOf(t, h.tokens["vera"], h.pull)
	if len(listed) != 1 || listed[0].ID != first.ID || listed[0].Pull != h.pull.String() || listed[0].HeadCommit != first.HeadCommit {
		t.Errorf("listed %+v", listed)
	}
	if err := h.service.DeleteReview(t.Context(), "alice", first.ID); task.CodeOf(err) != task.Forbidden {
		t.Errorf("deleting it gives %v", err)
	}
	// Another push is another review.
	h.push(t, "README.md", "one\nTwo\nthree\n")
	if second := h.review(t); second.ID == first.ID {
		t.Error("a new head commit was not reviewed")
	}
	h.wrote(t, "review <nil>")
}

func (h house) reviewsOf(t *testing.T, token string, pull task.Key) []wire.ReviewEntry {
	t.Helper()
	var listed wire.ReviewEntries
	_, _, body := h.get(t, "/v1/reviews?pull="+url.QueryEscape(pull.String()), token)
	must(t, json.Unmarshal([]byte(body), &listed))
	return listed.Reviews
}

func TestReviewsThatCannotBe(t *testing.T) {
	t.Parallel()
	h := newPullHouse(t)
	good := judge.Report{Commit: "abc", Question: "q", Answer: "$$[1]\nx", Judgement: json.RawMessage(`{}`), Verdict: "comment", Text: "x"}
	issue := h.pull
	issue.Kind = task.Issue
	for name, spoil := range map[string]func(*task.Key, *judge.Report){
		"an issue":        func(k *task.Key, _ *judge.Report) { *k = issue },
		"no commit":       func(_ *task.Key, r *judge.Report) { r.Commit = "" },
		"no verdict":      func(_ *task.Key, r *judge.Report) { r.Verdict = "" },
		"a bad verdict":   func(_ *task.Key, r *judge.Report) { r.Verdict = "merge" },
		"a bad judgement": func(_ *task.Key, r *judge.Report) { r.Judgement = json.RawMessage(`[]`) },
		"no question":     func(_ *task.Key, r *judge.Report) { r.Question = " " },
	} {
		key, report := h.pull, good
		spoil(&key, &report)
		if _, err := h.service.Reviewed(t.Context(), key, report); task.CodeOf(err) != task.Invalid {
			t.Errorf("%s gives %v", name, err)
		}
	}
	if listed := h.reviewsOf(t, h.tokens["vera"], h.pull); len(listed) != 0 {
		t.Errorf("listed %+v", listed)
	}
}

// A reply under the review is a turn of its thread and is answered there, once, on
// however many servers; what was cited is marked as stale by a later push.
func TestRepliesAreAnsweredOnTheForge(t *testing.T) {
	t.Parallel()
	h := newPullHouse(t)
	record := h.review(t)
	h.wrote(t, "review <nil>")
	threads, err := h.forge.ReviewThreads(t.Context(), h.pull)
	must(t, err)
	must(t, h.service.LookAtPull(t.Context(), h.pull, true)) // nothing to answer yet
	changes := items.NewFeed(h.snapshots)
	t.Cleanup(changes.Follow(h.store))
	h.service.StartWatching(t.Context(), changes, time.Hour)
	t.Cleanup(h.service.StopWatching)
	call[wire.BoardComment](t, h.boardHouse, 201, request{
		who: "alice", method: post, path: fmt.Sprintf("/team/app/pulls/%d/threads/%s", h.pull.Number, threads[0].ID), body: wire.BoardText{Body: "Why is it too loud?"},
	})
	h.wrote(t, "reply <nil>")
	other := h.newService(t, h.service.Forges, nil)
	var group sync.WaitGroup
	for _, service := range []*review.Service{h.service, other, other} {
		group.Go(func() {
			if err := service.LookAtPull(t.Context(), h.pull, true); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	threads, err = h.forge.ReviewThreads(t.Context(), h.pull)
	must(t, err)
	if said := threads[0].Comments; len(said) != 3 || !strings.Contains(said[2].Body, `See §1 "TWO"`) || !strings.Contains(said[2].Body, "(Not confirmed: §7") {
		t.Fatalf("the thread on the forge is %+v", said)
	}
	shared, err := h.service.Threads(t.Context(), "vera", record.ID)
	if err != nil || len(shared) != 1 || shared[0].Owner != "" {
		t.Fatalf("the threads are %+v, %v", shared, err)
	}
	said, err := h.service.Messages(t.Context(), "vera", shared[0].ID)
	must(t, err)
	if len(said) != 2 || said[0].Author != "alice" || said[0].Content != "§1 README.md:2\n> Too loud.\n\nWhy is it too loud?" ||
		said[1].Citations[0].State != review.Confirmed || said[1].Citations[1].State != review.Missing {
		t.Errorf("the messages are %+v", said)
	}
	requests := h.model.Records()
	if context := requests[len(requests)-1].Request.Messages[0].Text(); !strings.Contains(context, "README.md:1-3@"+record.HeadCommit) {
		t.Errorf("the model was not given the hunk: %s", context)
	}
	if _, err := h.service.Ask(t.Context(), "alice", shared[0].ID, review.Message{Content: "x"}); task.CodeOf(err) != task.Forbidden {
		t.Errorf("asking in the forge's thread gives %v", err)
	}

	// A push that leaves the lines alone leaves the citation; another does not.
	for _, step := range []struct {
		content string
		want    review.CitationState
	}{{"one\nTWO\nthree\nfour\n", review.Confirmed}, {"one\n2\nthree\nfour\n", review.Stale}} {
		h.push(t, "README.md", step.content)
		h.snapshots.Changed(h.pull)
		said, err := h.service.Messages(t.Context(), "vera", shared[0].ID)
		must(t, err)
		if got := said[1].Citations[0]; got.State != step.want {
			t.Errorf("after a push of %q the citation is %+v", step.content, got)
		}
		if got := said[1].Citations[1]; got.State != review.Missing {
			t.Errorf("what never existed is %+v", got)
		}
	}
}

// reply says something in the bot's first thread.
func (h *pullHouse) reply(t *testing.T, who, text string) {
	t.Helper()
	threads, err := h.forge.ReviewThreads(t.Context(), h.pull)
	must(t, err)
	_, err = h.board.As(who).AddReply(t.Context(), h.pull, threads[0].ID, text)
	must(t, err)
}

// A reply is answered in the language in which it is written.
func TestRepliesAreAnsweredInTheirLanguage(t *testing.T) {
	t.Parallel()
	h := newPullHouse(t)
	h.review(t)
	h.wrote(t, "review <nil>")
	for i, step := range []struct{ reply, asked, note string }{
		{"Why is it too loud?", "The user asks: ", "(Not confirmed: §7"},
		{"なぜうるさいのですか", "ユーザーの質問: ", "（確認できない引用: §7"},
		{"README.md", "ユーザーの質問: ", "（確認できない引用: §7"},
	} {
		h.reply(t, "alice", step.reply)
		must(t, h.service.LookAtPull(t.Context(), h.pull, true))
		h.wrote(t, "reply <nil>")
		records := h.model.Records()
		last := records[len(records)-1].Request.Messages
		if text := last[len(last)-1].Text(); !strings.Contains(text, step.asked+"§1 README.md:2\n> Too loud.\n\n"+step.reply) {
			t.Errorf("%q is sent as %q", step.reply, text)
		}
		threads, err := h.forge.ReviewThreads(t.Context(), h.pull)
		must(t, err)
		if said := threads[0].Comments; !strings.Contains(said[2*i+2].Body, step.note) {
			t.Errorf("%q is answered with %q", step.reply, said[2*i+2].Body)
		}
	}
}

// Replies are also found without anyone saying so.
func TestRepliesAreFoundByLooking(t *testing.T) {
	t.Parallel()
	h := newPullHouse(t)
	h.review(t)
	h.wrote(t, "review <nil>")
	h.reply(t, "alice", "Why?")
	h.service.StartWatching(t.Context(), items.NewFeed(h.snapshots), 10*time.Millisecond)
	t.Cleanup(h.service.StopWatching)
	h.wrote(t, "reply <nil>")
}

// What else happens on the pull request does not use up the attempts at answering a reply.
func TestChangesAreNoAttempts(t *testing.T) {
	t.Parallel()
	h := newPullHouse(t)
	h.review(t)
	h.wrote(t, "review <nil>")
	changes := items.NewFeed(h.snapshots)
	t.Cleanup(changes.Follow(h.store))
	h.service.StartWatching(t.Context(), changes, time.Hour)
	t.Cleanup(h.service.StopWatching)
	before := len(h.model.Records())
	h.reply(t, "alice", "never")
	for len(h.model.Records()) == before {
		<-time.After(10 * time.Millisecond)
	}
	for range 5 {
		_, err := h.board.As("alice").AddComment(t.Context(), h.pull, "By the way.")
		must(t, err)
	}
	must(t, h.board.AddUser(t.Context(), "carol", forge.WriteAccess))
	h.reply(t, "carol", "and now?")
	h.wrote(t, "reply <nil>")
	if tried := len(h.model.Records()) - before; tried != 2 {
		t.Errorf("the model was asked %d times for two replies", tried)
	}
}

// A reply that could not be answered is tried again, but not for ever, and those
// after it do not wait for it.
func TestRepliesAreTriedAgain(t *testing.T) {
	t.Parallel()
	h := newPullHouse(t)
	record := h.review(t)
	h.wrote(t, "review <nil>")
	h.reply(t, "alice", "later")
	for range 2 {
		if err := h.service.LookAtPull(t.Context(), h.pull, true); task.CodeOf(err) != task.Unavailable {
			t.Fatalf("looking gives %v", err)
		}
	}
	must(t, h.service.LookAtPull(t.Context(), h.pull, true))
	h.wrote(t, "reply <nil>")

	h.reply(t, "alice", "never")
	must(t, h.board.AddUser(t.Context(), "carol", forge.WriteAccess))
	h.reply(t, "carol", "and now?")
	if err := h.service.LookAtPull(t.Context(), h.pull, true); task.CodeOf(err) != task.Unavailable {
		t.Fatalf("looking gives %v", err)
	}
	h.wrote(t, "reply <nil>")
	before := len(h.model.Records())
	for range 10 {
		_ = h.service.LookAtPull(t.Context(), h.pull, true) // it fails until it gives up
	}
	if tried := len(h.model.Records()) - before; tried != 4 {
		t.Errorf("tried another %d times", tried)
	}
	must(t, h.service.LookAtPull(t.Context(), h.pull, true))
	shared, err := h.store.SharedThread(t.Context(), record.ID, "en")
	must(t, err)
	said, err := h.service.Messages(t.Context(), "vera", shared.ID)
	must(t, err)
	var states []string
	for _, one := range said {
		states = append(states, fmt.Sprint(one.Turn, " ", one.Role, " ", one.State, " ", one.Author))
	}
	want := "1 user answered alice, 1 assistant answered , 2 user answered carol, 2 assistant answered , 3 user unanswered alice"
	if got := strings.Join(states, ", "); got != want {
		t.Errorf("the messages are %s, want %s", got, want)
	}
}

// Somebody who may only read is not answered, unless they wrote what is reviewed.
func TestRepliesOfStrangersAreNotAnswered(t *testing.T) {
	t.Parallel()
	h := newPullHouse(t)
	h.review(t)
	h.wrote(t, "review <nil>")
	must(t, h.board.AddUser(t.Context(), "mallory", forge.ReadAccess))
	h.reply(t, "mallory", "Why?")
	before := len(h.model.Records())
	must(t, h.service.LookAtPull(t.Context(), h.pull, true))
	if asked := len(h.model.Records()) - before; asked != 0 {
		t.Errorf("a stranger has the model asked %d times", asked)
	}
	must(t, h.board.SetAccess(t.Context(), "alice", forge.ReadAccess)) // who wrote it
	h.reply(t, "alice", "Why?")
	must(t, h.service.LookAtPull(t.Context(), h.pull, true))
	h.wrote(t, "reply <nil>")
}

func TestWhoseRepliesCount(t *testing.T) {
	t.Parallel()
	comment := func(author, id string, minute int) task.Comment {
		return task.Comment{ID: id, Author: author, CreatedAt: time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)}
	}
	threads := []forge.ReviewThread{
		{ID: "ours", Comments: []task.Comment{comment("Toryo", "1", 0), comment("bob", "2", 9), comment("toryo", "3", 2), comment("dependabot[bot]", "4", 3), comment(forge.Ghost, "5", 4)}},
		{ID: "theirs", Comments: []task.Comment{comment("bob", "6", 0), comment("alice", "7", 1)}},
		{ID: "ours too", Comments: []task.Comment{comment("toryo", "8", 0), comment("alice", "9", 5)}},
		{ID: "empty"},
	}
	var got []string
	for _, reply := range review.Replies(threads, "toryo") {
		got = append(got, reply.Thread.ID+" "+reply.Comment.ID)
	}
	if want := "ours too 9, ours 2"; strings.Join(got, ", ") != want {
		t.Errorf("the replies are %q, want %q", got, want)
	}
}
