package phase

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/phase/turn"
	"github.com/toryo-dev/toryo/internal/task"
)

// chat is a conversation of the run with a model, in one phase.
type chat struct {
	run            *run
	name           string
	phase          task.Phase
	model          llm.Model
	conversation   *conversation.Conversation
	journal        *journal
	box            *tool.Box
	mustFinish     bool
	turns          int  // limit; 0 means the default
	loops          int  // of the model, for the interval of the checks
	ignoreComments bool // comments are not taken up
	// afterResults is called at the last of the checkpoints; may be nil.
	afterResults func(ctx context.Context) error
}

// opening says how a conversation begins.
type opening struct {
	name       string
	phase      task.Phase
	system     string
	pinned     []conversation.Block
	tools      []tool.Tool
	mustFinish bool
	turns      int
}

// open begins a conversation, or takes it up where the journal left it.
func (r *run) open(ctx context.Context, o opening) (*chat, error) {
	t := &chat{run: r, name: o.name, phase: o.phase, model: llm.WithImages(r.Model(o.phase), &r.images), mustFinish: o.mustFinish, turns: o.turns,
		journal: &journal{run: r, conversation: o.name, phase: o.phase}}
	tools := make([]tool.Tool, len(o.tools))
	for i, one := range o.tools {
		tools[i] = noted{one, t.journal}
	}
	var err error
	if t.box, err = tool.NewBox(tools...); err != nil {
		return nil, err
	}
	info := t.model.Info()
	options := conversation.Options{
		System: o.system, Tools: t.box.Definitions(), Pinned: o.pinned, Run: string(r.Work.Task), Phase: o.phase,
		ContextLength: info.ContextLength, Answer: info.MaxTokens,
		Threshold: r.Storage.Threshold, KeepRecent: r.Storage.KeepRecent,
		Summarizer: r.Summarizer, Prompts: r.Prompts, Counter: t.model, Journal: t.journal,
	}
	past := r.state.conversations[o.name]
	if len(past) == 0 {
		t.conversation, err = conversation.New(ctx, options)
		return t, err
	}
	if t.conversation, err = conversation.Restore(options, past); err != nil {
		return nil, err
	}
	if err := t.settle(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// settle answers the calls that the end of an earlier run left open: with their
// results where those are known, and else with what became of them.
func (t *chat) settle(ctx context.Context) error {
	open := t.last().Calls()
	if len(open) == 0 {
		if t.mustFinish && t.last().Role == llm.Assistant {
			return t.conversation.AddUserMessage(ctx, "The run was interrupted here and goes on now. Go on with the task, or call finish when it is done.")
		}
		return nil
	}
	results := make([]llm.Result, 0, len(open))
	for _, call := range open {
		result := llm.Result{CallID: call.ID, Name: call.Name, Error: true}
		switch known := t.run.state.calls[callKey(t.name, call.ID)]; {
		case known == nil:
			result.Text = "not done: the run was interrupted before this began"
		case known.result == nil:
			result.Text = tool.Interrupted
		default:
			result.Text, result.Error = known.result.Text, known.result.Failed
		}
		results = append(results, result)
	}
	return t.conversation.Results(ctx, results)
}

func (t *chat) last() llm.Message {
	messages := t.conversation.Request().Messages
	return messages[len(messages)-1]
}

// send adds a message for the model, once: what was sent before is not repeated
// when a run goes on.
func (t *chat) send(ctx context.Context, text string) error {
	if t.run.state.wasSent(t.name, text) {
		return nil
	}
	return t.conversation.AddUserMessage(ctx, text)
}

// hasNewComments reports whether the last message has comments, to which the model has not
// replied.
func (t *chat) hasNewComments() bool {
	last := t.last()
	return last.Role == llm.User && strings.Contains(last.Text(), `<pinned name="`+commentsBlock)
}

// ended is how the phase ended as far as the conversation says, nil if it has
// not. It is asked when a run goes on: the end may be the last that was written.
func (t *chat) ended() *turn.Outcome {
	messages := t.conversation.Request().Messages
	last := messages[len(messages)-1]
	if last.Role == llm.Assistant {
		return &turn.Outcome{Reason: task.ReasonCompleted, Text: last.Text()}
	}
	if len(messages) < 2 || last.Text() != "" {
		return nil
	}
	failed := map[string]bool{}
	for _, result := range last.Results() {
		failed[result.CallID] = result.Error
	}
	for _, call := range messages[len(messages)-2].Calls() {
		if failed[call.ID] || call.Name != finishTool && call.Name != askTool {
			continue
		}
		end := &tool.End{}
		if object, ok := llm.LenientObject(call.Arguments); ok {
			end.Summary, _ = object["summary"].(string)
			end.Question, _ = object["question"].(string)
			names, _ := object["proof"].([]any)
			for _, name := range names {
				if text, is := name.(string); is {
					end.Proof = append(end.Proof, text)
				}
			}
		}
		outcome := &turn.Outcome{Reason: task.ReasonCompleted, End: end}
		if call.Name == askTool {
			outcome.Reason = task.ReasonAwaitingAnswer
		}
		return outcome
	}
	return nil
}

// The tools that end a phase.
const (
	finishTool = "finish"
	askTool    = "ask"
)

// maxTurns is how often the model may answer.
func (t *chat) maxTurns() int { return cmp.Or(t.turns, t.run.Limits.Turn.Turns, 200) }

// turnsLeft is how often the model may still answer.
func (t *chat) turnsLeft() int { return t.maxTurns() - t.run.state.turns(t.name) }

// detail is what people are told about the reason for which the model ended a phase: the limit
// that was reached.
func (t *chat) detail(reason task.Reason) string {
	if reason != task.ReasonTurnsExhausted {
		return ""
	}
	return t.run.text("run.turn_limit", t.maxTurns())
}

// goOn calls the model until the phase ends. What people said at the last
// moment is answered before it does.
func (t *chat) goOn(ctx context.Context) (turn.Outcome, error) {
	for {
		limits := t.run.Limits.Turn
		if limits.Turns = t.turnsLeft(); limits.Turns <= 0 {
			return turn.Outcome{Reason: task.ReasonTurnsExhausted}, nil
		}
		t.conversation.Fit(t.model.Info()) // which may be a fallback since the last time
		outcome, err := turn.Run(ctx, turn.Options{
			Model: t.model, Conversation: t.conversation, Box: t.box, Limits: limits, MustFinish: t.mustFinish,
			Checkpoint: t.checkpoint, Sink: t.run.sink(t.phase), Recorder: t.journal, Redactor: t.run.Redactor,
		})
		if err != nil {
			return outcome, err
		}
		if (outcome.Reason == task.ReasonCompleted || outcome.Reason == task.ReasonAwaitingAnswer) && t.hasNewComments() {
			continue
		}
		return outcome, nil
	}
}

// mostComplaints is how often an answer that cannot be used goes back.
const mostComplaints = 3

// errNoAnswer says that the model gave no answer that can be used.
var errNoAnswer = errors.New("the model gave no answer that can be used")

// object calls the model until it answers with a JSON object that read
// accepts. An answer that it does not accept goes back with what is wrong.
func (t *chat) object(ctx context.Context, read func(object map[string]any) error) error {
	outcome := t.ended()
	for {
		if outcome == nil {
			next, err := t.goOn(ctx)
			if err != nil {
				return err
			}
			outcome = &next
		}
		if outcome.Reason != task.ReasonCompleted {
			return &overError{reason: outcome.Reason, text: t.detail(outcome.Reason), said: outcome.Text}
		}
		wrong := readObject(outcome.Text, read)
		if wrong == nil {
			return nil
		}
		if t.complaints() >= mostComplaints {
			return fmt.Errorf("%w: %w", errNoAnswer, wrong)
		}
		if err := t.conversation.AddUserMessage(ctx, complaint+wrong.Error()+".\nAnswer again with the whole JSON object and nothing else."); err != nil {
			return err
		}
		outcome = nil
	}
}

const complaint = "Your answer cannot be used: "

func (t *chat) complaints() int {
	count := 0
	for _, entry := range t.run.state.conversations[t.name] {
		if entry.Message != nil && entry.Message.Role == llm.User && strings.HasPrefix(entry.Message.Text(), complaint) {
			count++
		}
	}
	return count
}

// overError says that the model ended a phase without doing its work.
type overError struct {
	reason task.Reason
	text   string // about the failure
	said   string // by the model, about anything
}

func (p *overError) Error() string { return messages.Reason(task.English, p.reason) }

// readObject finds the JSON object in an answer, which may have words or a fence
// around it.
func readObject(text string, read func(map[string]any) error) error {
	object, ok := findObject(text)
	if !ok {
		return errors.New("there is no JSON object in it")
	}
	return read(object)
}

func findObject(text string) (map[string]any, bool) {
	start, end := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if start < 0 || end < start {
		return nil, false
	}
	if object, ok := llm.LenientObject(text[start : end+1]); ok {
		return object, true
	}
	// Words after the object may have a bracket too.
	decoder := json.NewDecoder(strings.NewReader(text[start:]))
	var object map[string]any
	return object, decoder.Decode(&object) == nil && object != nil
}

// into reads an object into a struct.
func into(object map[string]any, target any) error {
	data, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, target)
}
