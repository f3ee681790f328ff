package review_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// The language of a turn is the one that the person writes in, now or last; where that
// tells nothing it is the review's.
func TestLanguageFollowsThePerson(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		r := newRoom(t, database)
		thread := r.thread(t) // about a review in Japanese
		for i, step := range []struct{ input, want string }{
			{"OK_1", "ユーザーの質問: "},
			{"Why was it marked down?_2", "The user asks: "},
			{"§2_3", "The user asks: "},
			{"では第3段落は？_4", "ユーザーの質問: "},
			{"§2_5", "ユーザーの質問: "},
			{"What about section 3 then?_6", "The user asks: "},
		} {
			r.say(t, thread, step.input)
			r.Wait(t.Context())
			request := r.chat.requests()[i]
			if last := request.Messages[len(request.Messages)-1].Text(); last != step.want+step.input {
				t.Errorf("%q is sent as %q", step.input, last)
			}
			english := step.want == "The user asks: "
			if strings.Contains(request.System, "You are the reviewer") != english || strings.Contains(request.Messages[0].Text(), "[Question]") != english {
				t.Errorf("%q is sent with %.60q and %.60q", step.input, request.System, request.Messages[0].Text())
			}
			shown, err := r.Thread(t.Context(), "alice", thread.ID)
			must(t, err)
			if (shown.Language == "en") != english {
				t.Errorf("after %q the thread is in %s", step.input, shown.Language)
			}
		}
		if got := r.chat.requests()[5]; !strings.Contains(got.Messages[0].Text(), "(Specified)") {
			t.Error("a section that is named in English is not given")
		}
	})
}

// What the page puts into a message when somebody quotes the answer does not decide about
// the language, in whichever language the page is.
func TestQuotedTextIsNotSpoken(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		r := newRoom(t, database)
		thread := r.thread(t)
		japanese, english := strings.Repeat("契約は申込みと承諾の合致によって成立する。", 9), strings.Repeat("A contract needs an offer. ", 7)
		turn := 0
		for _, page := range []task.Language{task.Japanese, task.English} {
			for _, step := range []struct{ quoted, said, want string }{
				{japanese, "Why is this wrong?", "en"}, {english, "", "en"}, {english, "なぜ？", "ja"}, {japanese, "", "ja"},
			} {
				turn++
				r.say(t, thread, messages.Text(page, "review.quoted", "§3", step.quoted)+" "+step.said+fmt.Sprint("_", turn))
				shown, err := r.Thread(t.Context(), "alice", thread.ID)
				must(t, err)
				if shown.Language != step.want {
					t.Errorf("after %q about %q, quoted by a page in %s, the thread is in %s", step.said, step.quoted[:30], page, shown.Language)
				}
			}
		}
	})
}

// A language that was asked for stays.
func TestLanguageThatWasAskedFor(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		r := newRoom(t, database)
		thread, err := r.AddThread(t.Context(), "alice", r.thread(t).ReviewID, task.English)
		must(t, err)
		r.say(t, thread, "なぜ減点ですか_1")
		set := newRoom(t, database)
		set.Language = task.Japanese
		set.say(t, set.thread(t), "Why was it marked down?_1")
		for want, got := range map[string]room{"The user asks: なぜ減点ですか_1": r, "ユーザーの質問: Why was it marked down?_1": set} {
			request := got.chat.requests()[0]
			if last := request.Messages[len(request.Messages)-1].Text(); last != want {
				t.Errorf("it is %q, want %q", last, want)
			}
		}
	})
}

// Summaries are written in the language that the person writes in.
func TestSummaryFollowsThePerson(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		r := newRoom(t, database)
		thread := r.thread(t)
		for turn := 1; turn <= 5; turn++ {
			r.say(t, thread, fmt.Sprint("Please tell me more_", turn))
		}
		r.Wait(t.Context())
		after, err := r.Thread(t.Context(), "alice", thread.ID)
		must(t, err)
		if !strings.HasPrefix(after.ConversationSummary, "[Summary of turns 1 to 5]") || !strings.Contains(r.summary.requests()[0].System, "in English") {
			t.Errorf("the summary is %q", after.ConversationSummary)
		}
	})
}

// The files of prompts_dir take the place of the prompts of the chat and of its
// summaries, one by one.
func TestPromptsOfTheChatAreReplaced(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		r := newRoom(t, database)
		files := fstest.MapFS{
			"review_chat_system_ja.md":    {Data: []byte("手短に。\n")},
			"review_chat_summarize_ja.md": {Data: []byte("一行で。\n")},
			"review_chat_user_ja.md":      {Data: []byte("質問です: {{question}}\n")},
		}
		r.Prompts = files
		thread := r.thread(t)
		for turn := 1; turn <= 5; turn++ {
			r.say(t, thread, fmt.Sprint("{{question}}_", turn))
		}
		r.Wait(t.Context())
		request := r.chat.requests()[4]
		if !strings.HasPrefix(request.System, "手短に。\n\n") || !strings.Contains(request.System, "untrusted") {
			t.Errorf("the system prompt is %q", request.System)
		}
		if last := request.Messages[len(request.Messages)-1].Text(); last != "質問です: {{question}}_5" {
			t.Errorf("the question is sent as %q", last)
		}
		if system := r.summary.requests()[0].System; !strings.HasPrefix(system, "一行で。\n\n") {
			t.Errorf("the prompt of the summary is %q", system)
		}
		r.say(t, thread, "Please say more_6") // nothing replaces the English ones
		if system := r.chat.requests()[5].System; !strings.HasPrefix(system, "You are the reviewer") {
			t.Errorf("the English system prompt is %q", system)
		}
		files["review_chat_user_ja.md"].Data = []byte("質問です")
		if _, err := r.try(t.Context(), thread, review.Message{Content: "なぜ_7"}); task.CodeOf(err) != task.BadConfig || !strings.Contains(err.Error(), "{{question}}") {
			t.Errorf("a prompt that would leave out the question gives %v", err)
		}
	})
}

// So do those of reviews.
func TestPromptsOfReviewsAreReplaced(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(on place) {
		t, database := on.t, on.Store
		r := newRoom(t, database)
		r.Prompts = fstest.MapFS{"review.md": {Data: []byte("Be kind. Write in {{language}}.")}}
		if _, err := r.Judge(t.Context(), "alice", store.Question{Text: "What is a contract?"}, "An agreement."); err == nil {
			t.Error("the model of the test gives no judgement")
		}
		if system := r.chat.requests()[0].System; !strings.HasPrefix(system, "Be kind. Write in English.\n\n") {
			t.Errorf("the prompt of the review is %q", system)
		}
	})
}
