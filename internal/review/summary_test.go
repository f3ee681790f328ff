package review_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/store"
)

// segmentHeading is that of a summary or an excerpt, with the turns that it is of.
var segmentHeading = regexp.MustCompile(`【(\d+)～(\d+)ターンの(要約|抜粋)`)

// covers reports whether a turn is in one of the summaries, or stands among the excerpts with
// its own words.
func covers(summaries string, turn int) bool {
	for _, heading := range segmentHeading.FindAllStringSubmatch(summaries, -1) {
		first, _ := strconv.Atoi(heading[1])
		last, _ := strconv.Atoi(heading[2])
		if first <= turn && turn <= last {
			return heading[3] == "要約" || strings.Contains(summaries, fmt.Sprintf("ユーザー (%d): user_%d\n", turn, turn))
		}
	}
	return false
}

// bounded checks that a request of a turn has no more than it has with summaries: the
// context, one message in place of what was summarised, the last exchange of that, what
// came after, and the question.
func bounded(t *testing.T, request llm.Request, turn int) {
	t.Helper()
	summarised := (turn - 1) / 5 * 5
	array := arrayOf(request)
	if want := 2 + 2*(turn-summarised) + 1; summarised > 0 && len(array) != want {
		t.Fatalf("turn %d is sent %d messages, want %d: %q", turn, len(array), want, array)
	}
	if !strings.HasPrefix(array[1].Text, "【これまでの会話の要約】\n") || array[2] != (said{"user", fmt.Sprint("user_", summarised)}) {
		t.Errorf("turn %d begins with %q", turn, array[1:3])
	}
	for earlier := 1; earlier <= summarised; earlier++ {
		if !covers(array[1].Text, earlier) {
			t.Errorf("turn %d has nothing of turn %d: %q", turn, earlier, array[1].Text)
		}
	}
}

// A summary that fails loses nothing, and the history is not sent whole: excerpts stand
// in until the summary is there.
func TestFailedSummaryIsTriedLater(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		r := newRoom(t, database)
		thread := r.thread(t)
		good := r.summary.answer
		r.summary.answer = func(context.Context, llm.Request, llm.Sink) (string, error) {
			return "", &llm.Error{Kind: llm.Overloaded, Provider: "test"}
		}
		for turn := 1; turn <= 12; turn++ {
			r.say(t, thread, fmt.Sprint("user_", turn))
			r.Wait(t.Context())
			if turn > 5 {
				bounded(t, r.chat.requests()[turn-1], turn)
			}
		}
		if n := len(r.summary.requests()); n != 8 { // after turns 5 to 12
			t.Errorf("a summary was tried %d times", n)
		}
		excerpts := r.chat.requests()[11].Messages[1].Text()
		if want := []string{"【これまでの会話の要約】", "【1～5ターンの抜粋（要約はまだありません）】", "【6～10ターンの抜粋（要約はまだありません）】"}; !slices.Equal(headings(excerpts), want) {
			t.Errorf("in place of the summaries there are %q", headings(excerpts))
		}
		for turn := 1; turn <= 10; turn++ {
			if !strings.Contains(excerpts, fmt.Sprintf("ユーザー (%d): user_%d\n", turn, turn)) || !strings.Contains(excerpts, fmt.Sprintf("アシスタント (%d): assistant_%d\n", turn, turn)) {
				t.Errorf("nothing is left of turn %d:\n%s", turn, excerpts)
			}
		}
		r.summary.answer = good
		r.say(t, thread, "user_13")
		r.Wait(t.Context())
		after, err := r.Thread(t.Context(), "alice", thread.ID)
		must(t, err)
		if after.SummaryUpToTurn != 10 || !slices.Equal(headings(after.ConversationSummary), []string{"【1～5ターンの要約】", "【6～10ターンの要約】"}) {
			t.Errorf("the thread is %+v", after)
		}
		r.say(t, thread, "user_14")
		want := reference(r.chat.requests()[13].Messages[0].Text(), 13, 10, after.ConversationSummary, "user_14")
		if diff := cmp.Diff(want, arrayOf(r.chat.requests()[13])); diff != "" {
			t.Errorf("turn 14 (-want +got):\n%s", diff)
		}
	})
}

// hang lets summaries begin and not end before the test does.
func (r room) hang() (began chan struct{}) {
	began = make(chan struct{}, 100)
	r.summary.answer = func(ctx context.Context, _ llm.Request, _ llm.Sink) (string, error) {
		began <- struct{}{}
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	return began
}

// A summary that hangs holds nobody up, and is not begun again while it does.
func TestASummaryThatHangs(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		r := newRoom(t, database)
		r.SummaryWait = time.Millisecond
		began := r.hang()
		thread := r.thread(t)
		for turn := 1; turn <= 5; turn++ {
			r.say(t, thread, fmt.Sprint("user_", turn))
		}
		<-began
		for turn := 6; turn <= 12; turn++ { // each is answered while the summary still hangs
			r.say(t, thread, fmt.Sprint("user_", turn))
			bounded(t, r.chat.requests()[turn-1], turn)
		}
		if n := len(r.summary.requests()); n != 1 {
			t.Errorf("%d summaries were begun", n)
		}
	})
}

// slowReader is a database that holds up whoever reads the messages first after the fourth turn has
// ended: what is due is known by then.
type slowReader struct {
	store.Store
	ended      atomic.Int64
	read, goOn chan struct{}
}

func (s *slowReader) EndTurn(ctx context.Context, ended store.Ended) (store.Message, error) {
	stored, err := s.Store.EndTurn(ctx, ended)
	s.ended.Add(1)
	return stored, err
}

func (s *slowReader) Messages(ctx context.Context, thread string) ([]store.Message, error) {
	said, err := s.Store.Messages(ctx, thread)
	if s.ended.CompareAndSwap(4, 5) {
		close(s.read)
		<-s.goOn
	}
	return said, err
}

// A turn that ends while the one before is still looked at for summaries has its own.
func TestASummaryThatIsDueWhileOthersAreLookedFor(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, &slowReader{Store: on.Store, read: make(chan struct{}), goOn: make(chan struct{})}
		r := newRoom(t, database)
		r.SummaryWait = time.Millisecond
		thread := r.thread(t)
		for turn := 1; turn <= 4; turn++ {
			r.say(t, thread, fmt.Sprint("user_", turn))
		}
		<-database.read
		r.say(t, thread, "user_5")
		r.chat.answer = func(context.Context, llm.Request, llm.Sink) (string, error) {
			return "", &llm.Error{Kind: llm.BadRequest, Provider: "test"}
		}
		if _, err := r.try(t.Context(), thread, review.Message{Content: "user_6"}); err == nil { // it comes after the fifth, and asks for nothing
			t.Fatal("the sixth turn was answered")
		}
		close(database.goOn)
		r.Wait(t.Context())
		after, err := r.Thread(t.Context(), "alice", thread.ID)
		must(t, err)
		if after.SummaryUpToTurn != 5 {
			t.Errorf("after turn 5 the thread is %+v", after)
		}
	})
}

// A message that is sent while the summary is written has it, if it comes soon.
func TestAMessageWaitsALittleForTheSummary(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		r := newRoom(t, database)
		r.SummaryWait = time.Hour
		began, goOn := make(chan struct{}), make(chan struct{})
		r.summary.answer = func(context.Context, llm.Request, llm.Sink) (string, error) {
			close(began)
			<-goOn
			return "要約の本文", nil
		}
		thread := r.thread(t)
		for turn := 1; turn <= 5; turn++ {
			r.say(t, thread, fmt.Sprint("user_", turn))
		}
		<-began
		turn, err := r.Ask(t.Context(), "alice", thread.ID, review.Message{Content: "user_6"})
		must(t, err)
		close(goOn)
		_, err = turn.Follow(t.Context(), nil)
		must(t, err)
		want := reference(r.chat.requests()[5].Messages[0].Text(), 5, 5, "【1～5ターンの要約】\n要約の本文", "user_6")
		if diff := cmp.Diff(want, arrayOf(r.chat.requests()[5])); diff != "" {
			t.Errorf("turn 6 (-want +got):\n%s", diff)
		}
	})
}

// A message that comes to another server, while the first writes the summary, does not
// send the whole history either.
func TestAMessageElsewhereDuringTheSummary(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		first, second := newRoom(t, database), newRoom(t, database)
		began := first.hang()
		thread := first.thread(t)
		for turn := 1; turn <= 5; turn++ {
			first.say(t, thread, fmt.Sprint("user_", turn))
		}
		<-began
		second.say(t, thread, "user_6")
		bounded(t, second.chat.requests()[0], 6)
	})
}

// A summary that is wanted early and does not come leaves an excerpt in its place.
func TestAnEarlySummaryThatFails(t *testing.T) {
	t.Parallel()
	for name, hangs := range map[string]bool{"fails": false, "hangs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEachDatabase(t, func(on place) {
				t, database := on.t, on.Store
				r := newRoom(t, database)
				r.SummaryWait = time.Millisecond
				r.summary.answer = func(context.Context, llm.Request, llm.Sink) (string, error) {
					return "", &llm.Error{Kind: llm.Overloaded, Provider: "test"}
				}
				if hangs {
					r.hang()
				}
				r.chat.answer = func(ctx context.Context, request llm.Request, sink llm.Sink) (string, error) {
					if len(request.Messages) > 6 { // context, two exchanges and the question
						return "", &llm.Error{Kind: llm.TooLong, Provider: "test"}
					}
					return echo(ctx, request, sink)
				}
				thread := r.thread(t)
				for turn := 1; turn <= 4; turn++ {
					r.say(t, thread, fmt.Sprint("user_", turn))
				}
				requests := r.chat.requests()
				last := arrayOf(requests[len(requests)-1])
				if len(last) != 5 || !strings.Contains(last[1].Text, "ユーザー (1): user_1\n") || last[2].Text != "user_3" {
					t.Errorf("the last request is %q", last)
				}
			})
		})
	}
}

// A summary is made of messages that are too long for its model too.
func TestSummariesOfLongMessages(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		r := newRoom(t, database)
		r.summary.answer = func(_ context.Context, request llm.Request, _ llm.Sink) (string, error) {
			if len(request.Messages[0].Text()) > 20_000 {
				return "", &llm.Error{Kind: llm.TooLong, Provider: "test"}
			}
			return "要約の本文", nil
		}
		thread := r.thread(t)
		for turn := 1; turn <= 5; turn++ {
			r.say(t, thread, strings.Repeat("長い質問。", 1000)+fmt.Sprint("_", turn)) // 15,000 bytes
		}
		r.Wait(t.Context())
		if after, err := r.Thread(t.Context(), "alice", thread.ID); err != nil || after.SummaryUpToTurn != 5 {
			t.Errorf("the thread is %+v, %v", after, err)
		}
	})
}
