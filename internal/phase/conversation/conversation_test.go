package conversation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/llmtest"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/task"
)

// journal keeps entries as they would be on disk: as JSON.
type journal struct {
	lines []string
	fail  error
}

func (j *journal) Append(_ context.Context, entry conversation.Entry) error {
	if j.fail != nil {
		return j.fail
	}
	line, err := json.Marshal(entry)
	j.lines = append(j.lines, string(line))
	return err
}

func (j *journal) entries(t interface{ Fatal(...any) }) []conversation.Entry {
	var entries []conversation.Entry
	for _, line := range j.lines {
		var entry conversation.Entry
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entry)
	}
	return entries
}

// summarizer answers requests for summaries as it is told.
type summarizer struct {
	answer func(request llm.Request) (string, error)
	asked  int
}

func (s *summarizer) Info() llm.Info { return llm.Info{Provider: "test", ContextLength: 8000} }
func (s *summarizer) CountTokens(context.Context, llm.Request) (int64, error) {
	return 0, llm.NewError(llm.CannotCount, "test", nil)
}
func (s *summarizer) Chat(_ context.Context, request llm.Request, _ llm.Sink) (llm.Response, error) {
	s.asked++
	text, err := s.answer(request)
	return llm.Response{Message: llmtest.AssistantText(text), Usage: llm.Usage{Input: 10, Output: 5}}, err
}

func short(llm.Request) (string, error) { return "Findings: it is in a.go.", nil }

var pinned = []conversation.Block{
	{Name: "request", Text: "Fix the test. <b>ü</b>"}, {Name: "rules", Text: "Use tabs.\n"}, {Name: "plan", Text: "1. look\n2. fix"},
}

func options(j *journal, s llm.Model) conversation.Options {
	return conversation.Options{
		System: "You are an agent.", Tools: []llm.Tool{{Name: "read", Description: "reads", Schema: []byte(`{"type":"object"}`)}},
		Pinned: pinned, ContextLength: 4000, Answer: 500, Summarizer: s, Journal: j,
	}
}

func begin(t *testing.T, o conversation.Options) *conversation.Conversation {
	t.Helper()
	c, err := conversation.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func turn(t interface{ Fatal(...any) }, c *conversation.Conversation, id, output string) {
	ctx := context.Background()
	call := llm.CallPart(llm.Call{ID: id, Name: "read", Arguments: `{"path":"` + id + `"}`})
	if err := c.AddModelMessage(ctx, llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.TextPart("I read " + id), call}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Results(ctx, []llm.Result{{CallID: id, Name: "read", Text: output}}); err != nil {
		t.Fatal(err)
	}
}

func ordered(t interface{ Fatal(...any) }, request llm.Request) string {
	data, err := json.Marshal(struct {
		T []llm.Tool
		S string
		M []llm.Message
	}{request.Tools, request.System, request.Messages})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimRight(string(data), "]}")
}

func TestWhatIsSentIsOnlyAppendedTo(t *testing.T) {
	t.Parallel()
	c := begin(t, conversation.Options{System: "s", Pinned: pinned})
	before := ordered(t, c.Request())
	for i := range 20 {
		turn(t, c, fmt.Sprintf("f%d", i), "content")
		if i%3 == 0 {
			if err := c.Pin(t.Context(), conversation.Block{Name: "todo", Text: fmt.Sprintf("done: %d", i)}); err != nil {
				t.Fatal(err)
			}
		}
		after := ordered(t, c.Request())
		if !strings.HasPrefix(after, before) {
			at := script.CommonPrefix(before, after)
			t.Fatalf("turn %d changes what was sent at byte %d: %q", i, at, before[at:])
		}
		before = after
	}
	if c.Pinned("todo") != "done: 18" || c.Pinned("nothing") != "" {
		t.Errorf("todo is %q", c.Pinned("todo"))
	}
}

func TestMaskingComesFirst(t *testing.T) {
	t.Parallel()
	j, s := &journal{}, &summarizer{answer: short}
	o := options(j, s)
	o.ContextLength = 6000
	c := begin(t, o)
	for i := range 10 {
		turn(t, c, fmt.Sprintf("f%d", i), strings.Repeat("x", 1500))
	}
	done, err := c.Compact(t.Context())
	if err != nil || done == nil || done.Method != conversation.Masked || s.asked != 0 {
		t.Fatalf("%+v, %v after %d summaries, want masking alone", done, err, s.asked)
	}
	messages := c.Request().Messages
	if got := messages[2].Results()[0].Text; !strings.Contains(got, "1500 bytes left out") {
		t.Errorf("the oldest output is %.80q", got)
	}
	if got := messages[len(messages)-1].Results()[0].Text; len(got) != 1500 {
		t.Errorf("the newest output has %d bytes", len(got))
	}
	if done.After >= done.Before || c.Due() {
		t.Errorf("from %d to %d tokens", done.Before, done.After)
	}
	if again, err := c.Compact(t.Context()); again != nil || err != nil {
		t.Errorf("nothing is due: %+v, %v", again, err)
	}
}

func long(t *testing.T, c *conversation.Conversation) {
	t.Helper()
	for i := range 30 {
		turn(t, c, fmt.Sprintf("f%d", i), strings.Repeat("y", 390)) // too short to be masked
	}
}

func TestSummaryKeepsThePinnedBlocks(t *testing.T) {
	t.Parallel()
	var seen strings.Builder
	j, s := &journal{}, &summarizer{answer: func(request llm.Request) (string, error) {
		if !strings.Contains(request.System, "data") {
			return "", errors.New("the prompt does not say what the transcript is")
		}
		seen.WriteString(request.Messages[0].Text())
		return "Findings: it is in a.go.", nil
	}}
	c := begin(t, options(j, s))
	if err := c.Pin(t.Context(), conversation.Block{Name: "plan", Text: "1. look (done)\n2. fix"}); err != nil {
		t.Fatal(err)
	}
	long(t, c)
	done, err := c.Compact(t.Context())
	if err != nil || done == nil || done.Method != conversation.Summarized {
		t.Fatalf("%+v, %v", done, err)
	}
	head := c.Request().Messages[0].Text()
	for _, want := range []string{pinned[0].Text, pinned[1].Text, "1. look (done)\n2. fix", "Findings: it is in a.go."} {
		if !strings.Contains(head, want) {
			t.Errorf("%q is not in the head:\n%s", want, head)
		}
	}
	if strings.Contains(head, "1. look\n2. fix") {
		t.Errorf("the old plan is still in the head")
	}
	if s.asked < 2 || done.Usage.Input != int64(10*s.asked) {
		t.Errorf("usage %+v of %d steps, want several", done.Usage, s.asked)
	}
	for i := range 25 {
		if !strings.Contains(seen.String(), fmt.Sprintf(`The agent calls read {"path":"f%d"}`, i)) {
			t.Errorf("turn %d was not summarised", i)
		}
	}
	// The journal has it all.
	all := strings.Join(j.lines, "\n")
	for i := range 30 {
		if !strings.Contains(all, fmt.Sprintf(`I read f%d"`, i)) {
			t.Errorf("turn %d is not in the journal", i)
		}
	}
}

// counter counts tokens, or cannot.
type counter struct {
	summarizer
	tokens int64
	asked  int
}

func (c *counter) CountTokens(context.Context, llm.Request) (int64, error) {
	c.asked++
	if c.tokens == 0 {
		return 0, llm.NewError(llm.CannotCount, "test", nil)
	}
	return c.tokens, nil
}

func TestAnExactCountSparesACompaction(t *testing.T) {
	t.Parallel()
	for tokens, want := range map[int64]bool{900: false, 3400: true, 0: true} {
		count := &counter{tokens: tokens}
		o := options(&journal{}, nil)
		o.Counter = count
		c := begin(t, o)
		for i := range 6 {
			turn(t, c, fmt.Sprintf("f%d", i), strings.Repeat("x", 1500)) // about 3,400 by the first guess
		}
		done, err := c.Compact(t.Context())
		if err != nil || (done != nil) != want || count.asked != 1 {
			t.Errorf("%d tokens: %+v, %v after %d counts", tokens, done, err, count.asked)
		}
	}
}

// A file of the configuration takes the place of the prompt.
func TestThePromptOfSummariesIsReplaced(t *testing.T) {
	t.Parallel()
	system := ""
	s := &summarizer{answer: func(request llm.Request) (string, error) {
		system = request.System
		return "Findings: it is in a.go.", nil
	}}
	changed := options(&journal{}, s)
	changed.Prompts = fstest.MapFS{"summarize.md": {Data: []byte("Sum up as we do.\n")}}
	c := begin(t, changed)
	long(t, c)
	if _, err := c.Compact(t.Context()); err != nil || system != "Sum up as we do." {
		t.Errorf("the prompt is %q, %v", system, err)
	}
}

func TestBadSummariesAreNotUsed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(llm.Request) (string, error)
		why    string
	}{
		"fails": {func(llm.Request) (string, error) { return "", llm.NewError(llm.Overloaded, "test", nil) }, "the summary failed"},
		"empty": {func(llm.Request) (string, error) { return "  \n", nil }, "empty"},
		"grows": {func(llm.Request) (string, error) { return strings.Repeat("and ", 20_000), nil }, "longer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &summarizer{answer: c.answer}
			talk := begin(t, options(&journal{}, s))
			turn(t, talk, "big", strings.Repeat("z", 3000)) // something to mask
			long(t, talk)
			done, err := talk.Compact(t.Context())
			if done == nil && err == nil {
				t.Fatal("nothing was done")
			}
			if err != nil {
				if task.CodeOf(err) != task.TooLarge {
					t.Fatal(err)
				}
				return
			}
			if done.Method != conversation.Masked || !strings.Contains(done.Failure, c.why) {
				t.Errorf("%s: %s", done.Method, done.Failure)
			}
			asked := s.asked
			if _, err := talk.Compact(t.Context()); err != nil || s.asked != asked {
				t.Errorf("it is tried again at once: %v", err)
			}
		})
	}
}

func TestWhatCannotFitIsAnError(t *testing.T) {
	t.Parallel()
	o := options(&journal{}, &summarizer{answer: short})
	o.Pinned = []conversation.Block{{Name: "request", Text: strings.Repeat("long ", 10_000)}}
	c := begin(t, o)
	if _, err := c.Compact(t.Context()); task.CodeOf(err) != task.TooLarge {
		t.Errorf("%v, want too large", err)
	}
}

func TestRecentOutputsAreMaskedWhenNothingElseHelps(t *testing.T) {
	t.Parallel()
	c := begin(t, options(&journal{}, nil))
	turn(t, c, "huge", strings.Repeat("h", 40_000))
	done, err := c.Compact(t.Context())
	if err != nil || done == nil || done.After > 3500 {
		t.Fatalf("%+v, %v", done, err)
	}
}

func TestOrderIsKept(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := begin(t, conversation.Options{System: "s", Pinned: pinned})
	calls := llm.Message{Role: llm.Assistant, Parts: []llm.Part{
		llm.CallPart(llm.Call{ID: "a", Name: "read"}), llm.CallPart(llm.Call{ID: "b", Name: "read"}),
	}}
	if err := c.AddModelMessage(ctx, calls); err != nil {
		t.Fatal(err)
	}
	if err := c.AddUserMessage(ctx, "a comment arrives while the tool runs"); err != nil {
		t.Fatal(err)
	}
	for name, results := range map[string][]llm.Result{
		"one of two": {{CallID: "a"}}, "a stranger": {{CallID: "a"}, {CallID: "x"}}, "twice": {{CallID: "a"}, {CallID: "a"}}, "none": nil,
	} {
		if err := c.Results(ctx, results); task.CodeOf(err) != task.Conflict {
			t.Errorf("%s: %v, want a conflict", name, err)
		}
	}
	if err := c.AddModelMessage(ctx, llmtest.AssistantText("again")); task.CodeOf(err) != task.Conflict {
		t.Errorf("two answers: %v", err)
	}
	if err := c.Results(ctx, []llm.Result{{CallID: "b", Text: "2"}, {CallID: "a", Text: "1"}}); err != nil {
		t.Fatal(err)
	}
	last := c.Request().Messages[2]
	if len(last.Parts) != 3 || last.Parts[0].Result == nil || last.Parts[2].Text != "a comment arrives while the tool runs" {
		t.Errorf("%+v", last)
	}
	for name, bad := range map[string]llm.Message{
		"empty": {Role: llm.Assistant}, "blank": llmtest.AssistantText("  "), "user": llm.UserText("x"),
		"no id":   {Role: llm.Assistant, Parts: []llm.Part{llm.CallPart(llm.Call{Name: "read"})}},
		"same id": {Role: llm.Assistant, Parts: []llm.Part{llm.CallPart(llm.Call{ID: "q"}), llm.CallPart(llm.Call{ID: "q"})}},
	} {
		if err := c.AddModelMessage(ctx, bad); task.CodeOf(err) != task.Invalid {
			t.Errorf("%s: %v, want invalid", name, err)
		}
	}
	if err := c.AddUserMessage(ctx, " "); task.CodeOf(err) != task.Invalid {
		t.Errorf("an empty message: %v", err)
	}
}

func TestNothingCountsThatIsNotInTheJournal(t *testing.T) {
	t.Parallel()
	j := &journal{}
	c := begin(t, options(j, nil))
	before := ordered(t, c.Request())
	j.fail = errors.New("disk full")
	if err := c.AddUserMessage(t.Context(), "x"); !errors.Is(err, j.fail) {
		t.Errorf("%v", err)
	}
	if err := c.AddModelMessage(t.Context(), llmtest.AssistantText("x")); !errors.Is(err, j.fail) {
		t.Errorf("%v", err)
	}
	if err := c.Pin(t.Context(), conversation.Block{Name: "n", Text: "t"}); !errors.Is(err, j.fail) {
		t.Errorf("%v", err)
	}
	if after := ordered(t, c.Request()); after != before {
		t.Error("the conversation has changed")
	}
}

// TestConversationKeepsItsPromises does random things in random order with a
// summarizer that misbehaves, and checks after each what must always hold.
func TestConversationKeepsItsPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		s := &summarizer{answer: func(llm.Request) (string, error) {
			switch rapid.IntRange(0, 3).Draw(t, "summary") {
			case 0:
				return "", errors.New("down")
			case 1:
				return strings.Repeat("long ", rapid.IntRange(1, 5000).Draw(t, "length")), nil
			}
			return "Notes.", nil
		}}
		j := &journal{}
		o := options(j, s)
		o.KeepRecent = rapid.IntRange(1, 8).Draw(t, "keep")
		c, err := conversation.New(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		blocks := map[string]string{}
		for _, block := range pinned {
			blocks[block.Name] = block.Text
		}
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "do") {
			case 6:
				text := rapid.StringN(0, 40, 200).Draw(t, "text")
				if err := c.Replace(ctx, []string{"todo", "next"}, conversation.Block{Name: "both", Text: text}); err != nil {
					t.Fatal(err)
				}
				delete(blocks, "todo")
				delete(blocks, "next")
				blocks["both"] = text
			case 0:
				text := rapid.StringN(0, 40, 200).Draw(t, "text") + strings.Repeat("p", rapid.IntRange(0, 600).Draw(t, "more"))
				name := rapid.SampledFrom([]string{"plan", "todo", "next"}).Draw(t, "name")
				if err := c.Pin(ctx, conversation.Block{Name: name, Text: text}); err != nil {
					t.Fatal(err)
				}
				blocks[name] = text
			case 1:
				if err := c.AddUserMessage(ctx, fmt.Sprintf("comment %d", step)); err != nil {
					t.Fatal(err)
				}
			default:
				randomTurn(t, c, step)
			}
			request := c.Request()
			c.Observe(request, llm.Usage{Input: int64(request.Size() / 3)})
			done, err := c.Compact(ctx)
			if err != nil && task.CodeOf(err) != task.TooLarge {
				t.Fatal(err)
			}
			checkPromises(t, c, o, blocks, done)
		}
		restored, err := conversation.Restore(o, j.entries(t))
		if err != nil {
			t.Fatal(err)
		}
		want, got := c.Request(), restored.Request()
		want.InputTokens, got.InputTokens = 0, 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("the conversation is another after a restart: %s", diff)
		}
	})
}

// TestReplacedBlocksMakeRoom pins more than the model takes, and replaces it.
func TestReplacedBlocksMakeRoom(t *testing.T) {
	t.Parallel()
	c := begin(t, options(&journal{}, &summarizer{answer: short}))
	var names []string
	for i := range 8 {
		turn(t, c, fmt.Sprint("c", i), "ok")
		names = append(names, fmt.Sprint("said", i))
		if err := c.Pin(t.Context(), conversation.Block{Name: names[i], Text: strings.Repeat("word ", 400)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Compact(t.Context()); task.CodeOf(err) != task.TooLarge {
		t.Fatalf("it fits: %v", err)
	}
	if err := c.Replace(t.Context(), names, conversation.Block{Name: "said", Text: "Eight people said very much."}); err != nil {
		t.Fatal(err)
	}
	done, err := c.Compact(t.Context())
	if err != nil || done == nil {
		t.Fatal(done, err)
	}
	head := c.Request().Messages[0].Text()
	if !strings.Contains(head, "Eight people") || strings.Contains(head, `"said3"`) {
		t.Errorf("the head is %s", head)
	}
}

func randomTurn(t *rapid.T, c *conversation.Conversation, step int) {
	ctx := context.Background()
	count := rapid.IntRange(0, 3).Draw(t, "calls")
	message := llm.Message{Role: llm.Assistant, Parts: []llm.Part{{Thinking: &llm.Thinking{Text: "hm"}}, llm.TextPart("I go on.")}}
	var results []llm.Result
	for i := range count {
		id := fmt.Sprintf("c%d_%d", step, i)
		message.Parts = append(message.Parts, llm.CallPart(llm.Call{ID: id, Name: "read", Arguments: "{}"}))
		results = append(results, llm.Result{CallID: id, Name: "read", Text: strings.Repeat("o", rapid.IntRange(0, 3000).Draw(t, "output"))})
	}
	if err := c.AddModelMessage(ctx, message); err != nil {
		t.Fatal(err)
	}
	if count == 0 {
		if err := c.AddUserMessage(ctx, "go on"); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := c.Results(ctx, results); err != nil {
		t.Fatal(err)
	}
}

func checkPromises(t *rapid.T, c *conversation.Conversation, o conversation.Options, blocks map[string]string, done *conversation.Compaction) {
	request := c.Request()
	if request.System != o.System || len(request.Tools) != 1 {
		t.Fatalf("system prompt or tools are gone")
	}
	var open []string
	for i, message := range request.Messages {
		if (i%2 == 0) != (message.Role == llm.User) {
			t.Fatalf("message %d is from %s", i, message.Role)
		}
		var answered []string
		for _, result := range message.Results() {
			answered = append(answered, result.CallID)
		}
		if !cmp.Equal(open, answered) {
			t.Fatalf("message %d answers %v, open are %v", i, answered, open)
		}
		open = nil
		for _, call := range message.Calls() {
			open = append(open, call.ID)
		}
	}
	if len(open) > 0 {
		t.Fatalf("calls %v are open at the end", open)
	}
	if done == nil {
		return
	}
	for name, text := range blocks {
		if !strings.Contains(request.Messages[0].Text(), fmt.Sprintf("<pinned name=%q>\n%s\n</pinned>", name, text)) {
			t.Fatalf("the block %q is not there word for word after a compaction", name)
		}
	}
	if done.After >= done.Before+1 {
		t.Fatalf("the conversation grew from %d to %d", done.Before, done.After)
	}
}
