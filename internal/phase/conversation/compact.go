package conversation

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/prompt"
	"github.com/toryo-dev/toryo/internal/task"
)

//go:embed prompts/*.md
var embedded embed.FS

// Method is how a compaction made room.
type Method string

// The methods.
const (
	Masked     Method = "masked"
	Summarized Method = "summarized"
)

// Compaction is a compaction that was made. State is the conversation after it,
// from which it can be rebuilt.
type Compaction struct {
	Method  Method    `json:"method"`
	Before  int64     `json:"before"` // estimated tokens
	After   int64     `json:"after"`
	Failure string    `json:"failure,omitempty"` // why there is no summary, when one was wanted
	Usage   llm.Usage `json:"usage"`             // of the summary
	Cost    llm.Money `json:"cost"`
	// Standin says that another model wrote it than the one that is configured, if so.
	Standin *llm.Standin `json:"standin,omitempty"`
	State   State        `json:"state"`
}

const (
	// enough is the share of the threshold to which masking has to come down, or
	// the next compaction would follow at once.
	enough = 0.6
	// leastMasked is the size below which an output is not worth masking.
	leastMasked = 400
	// quietShare is the part of the threshold by which the conversation grows
	// before the next try, when one has gained too little.
	quietShare = 10
	// summaryTokens limits a summary.
	summaryTokens = 2000
)

// Due reports whether the conversation is so long that a compaction is due.
func (c *Conversation) Due() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.options.ContextLength == 0 {
		return false
	}
	tokens := c.tokens(c.state)
	return tokens > c.limit() && (tokens > c.quiet || tokens > c.room())
}

// Fit has the conversation keep to the context of another model from now on.
func (c *Conversation) Fit(model llm.Info) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.options.ContextLength, c.options.Answer, c.quiet = model.ContextLength, model.MaxTokens, 0
}

// room is what the model takes at most.
func (c *Conversation) room() int64 { return c.options.ContextLength - c.options.Answer }

// counted asks for an exact count when there has been none, and reports whether
// it got one. Without one the estimate has to do.
func (c *Conversation) counted(ctx context.Context) bool {
	if c.options.Counter == nil || c.meter.Exact() {
		return false
	}
	request := c.Request()
	count, err := c.options.Counter.CountTokens(ctx, request)
	if err != nil {
		return false
	}
	c.meter.Observe(request.Size(), count)
	return true
}

func (c *Conversation) limit() int64 {
	share := int64(float64(c.options.ContextLength) * c.options.Threshold)
	return max(1, min(share, c.room()))
}

// Compact makes room when that is due, and returns what it did, nil when nothing
// was due or nothing could be gained. A conversation that does not fit even so gives an
// error with the code TooLarge. It may not be called while calls are open.
//
// A conversation is a head of pinned blocks (the request, the plan, what people said), a
// summary, and turns. The head is never shortened. Two steps make room, and the second is
// only taken if the first is not enough:
//
//  1. Long outputs in all turns but the most recent ones are masked: a note says how many
//     bytes were there and that the tool can be used again. What the model said stays.
//  2. All turns but the most recent ones are replaced by a summary that a model writes.
//
// For example, with a context of 100,000 tokens and a threshold of 0.7, a compaction is due
// above 70,000. Masking has to come down to 60 % of that, 42,000, or a summary follows. If
// neither helps, the next try is after another 7,000 tokens. Whatever was done is checked by
// [Verify] before it counts: a request that lost a pinned block, or a call without its
// result, is not used. The state after it is in the journal, so that a run that goes on
// has the same conversation without asking for the summary again.
func (c *Conversation) Compact(ctx context.Context) (*Compaction, error) {
	if !c.Due() || c.counted(ctx) && !c.Due() {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open() != nil {
		return nil, task.Errorf(task.Conflict, "a conversation cannot be compacted while calls are open")
	}
	before := c.request(c.state)
	masked := c.state
	masked.Head = slices.Clone(c.state.Pinned)
	masked.Turns = mask(c.state.Turns, len(c.state.Turns)-c.options.KeepRecent)
	done := &Compaction{Method: Masked, Before: before.InputTokens, State: masked}
	if c.tokens(masked) > int64(float64(c.limit())*enough) {
		c.summarize(ctx, done, masked, before)
	}
	if c.tokens(done.State) > c.room() {
		// What was to be left alone is too large by itself.
		done.State.Turns = mask(done.State.Turns, len(done.State.Turns))
	}
	done.After = c.tokens(done.State)
	if done.After > c.limit() {
		c.quiet = done.After + c.limit()/quietShare
	}
	if err := Verify(before, c.request(done.State), c.state.Pinned); err != nil {
		return nil, c.nothingGained(before, err)
	}
	if done.After > c.room() {
		return nil, c.tooLong(done.After, nil)
	}
	if err := c.record(ctx, Entry{Kind: CompactionEntry, Compaction: done}); err != nil {
		return nil, err
	}
	c.state = done.State
	return done, nil
}

// nothingGained is no error as long as the conversation fits.
func (c *Conversation) nothingGained(before llm.Request, reason error) error {
	if before.InputTokens > c.room() {
		return c.tooLong(before.InputTokens, reason)
	}
	c.quiet = before.InputTokens + c.limit()/quietShare
	return nil
}

func (c *Conversation) tooLong(tokens int64, reason error) error {
	err := task.Errorf(task.TooLarge, "the conversation has about %d tokens and cannot be made smaller; the model takes %d beside its answer", tokens, c.room())
	err.Err = reason
	return err.WithHint("use a model with a longer context")
}

func (c *Conversation) tokens(state State) int64 { return c.request(state).InputTokens }

// mask replaces the outputs of the first turns and the pinned blocks that they told of, which
// the head has, and drops what was thought there.
func mask(turns []llm.Message, count int) []llm.Message {
	masked := slices.Clone(turns)
	for i := range count {
		parts := make([]llm.Part, 0, len(turns[i].Parts))
		for _, part := range turns[i].Parts {
			switch {
			case part.Thinking != nil, part.Image != nil, strings.HasPrefix(part.Text, imageOf): // a pinned block keeps its images
			case part.Result != nil:
				parts = append(parts, llm.ResultPart(maskResult(*part.Result)))
			case turns[i].Role == llm.User && len(part.Text) >= leastMasked && strings.HasPrefix(part.Text, pinnedNow):
				parts = append(parts, llm.TextPart("[a pinned block, which is at the start as it is now]"))
			default:
				parts = append(parts, part)
			}
		}
		masked[i] = llm.Message{Role: turns[i].Role, Parts: parts}
	}
	return masked
}

func maskResult(result llm.Result) llm.Result {
	if len(result.Text) >= leastMasked {
		result.Text = fmt.Sprintf("[%d bytes left out; use the tool again if you need them]", len(result.Text))
	}
	return result
}

// summarize replaces the older turns by a summary, if that works and passes the
// check. Otherwise done stays as it is, with the reason noted.
func (c *Conversation) summarize(ctx context.Context, done *Compaction, masked State, before llm.Request) {
	if c.options.Summarizer == nil {
		done.Failure = "there is no model for summaries"
		return
	}
	cut := boundary(masked.Turns, len(masked.Turns)-c.options.KeepRecent)
	if cut == 0 {
		done.Failure = "there is nothing old enough to summarise"
		return
	}
	summary, err := c.write(ctx, done, masked, cut)
	if err != nil {
		done.Failure = "the summary failed: " + err.Error()
		return
	}
	candidate := masked
	candidate.Summary = summary
	candidate.Turns = masked.Turns[cut:]
	switch {
	case candidate.Summary == "":
		done.Failure = "the summary is empty"
	case c.request(candidate).Size() >= c.request(masked).Size():
		done.Failure = "the summary is longer than what it replaces"
	default:
		if err := Verify(before, c.request(candidate), c.state.Pinned); err != nil {
			done.Failure = err.Error()
			return
		}
		done.Method, done.State = Summarized, candidate
	}
}

// boundary returns the last place at or before the given one where the model
// begins to speak, so that no call is split from its result.
func boundary(turns []llm.Message, at int) int {
	for at = min(at, len(turns)-1); at > 0; at-- {
		if turns[at].Role == llm.Assistant {
			return at
		}
	}
	return 0
}

// write has the model summarise the turns before the cut, in as many steps as its
// context needs: each takes the notes so far and the next piece.
func (c *Conversation) write(ctx context.Context, done *Compaction, state State, cut int) (string, error) {
	system, err := prompt.Read(embedded, c.options.Prompts, "summarize.md")
	if err != nil {
		return "", err
	}
	notes := state.Summary
	for _, piece := range piecesOf(state.Turns[:cut], c.summaryRoom()) {
		piece = llm.Quote(llm.Origin{Source: "transcript"}, piece)
		if notes != "" {
			piece = "Your notes on what was before, to be kept and extended:\n" + llm.Quote(llm.Origin{Source: "notes"}, notes) + "\n\n" + piece
		}
		response, err := c.options.Summarizer.Chat(ctx, llm.Request{
			System:    system,
			Messages:  []llm.Message{llm.UserText(piece)},
			MaxTokens: summaryTokens, Run: c.options.Run, Phase: c.options.Phase,
		}, nil)
		if err != nil {
			return "", err
		}
		done.Usage, done.Cost = done.Usage.Add(response.Usage), done.Cost+response.Cost
		if response.Standin != nil {
			done.Standin = response.Standin
		}
		if notes = strings.TrimSpace(response.Message.Text()); notes == "" {
			return "", nil
		}
	}
	return notes, nil
}

// summaryRoom is how many bytes of transcript the model that summarises is given
// at once: its context without prompt, notes and answer, at two bytes a token.
func (c *Conversation) summaryRoom() int {
	length := c.options.ContextLength
	if own := c.options.Summarizer.Info().ContextLength; own > 0 {
		length = min(length, own)
	}
	return int(max(length-3*summaryTokens, 2000)) * 2
}

// piecesOf shows the turns as text, in pieces of about the given size.
func piecesOf(turns []llm.Message, size int) []string {
	var pieces []string
	var b strings.Builder
	for _, turn := range turns {
		text := transcribe(turn)
		if b.Len() > 0 && b.Len()+len(text) > size {
			pieces = append(pieces, b.String())
			b.Reset()
		}
		b.WriteString(text + "\n\n")
	}
	return append(pieces, b.String())
}

func transcribe(message llm.Message) string {
	var lines []string
	for _, part := range message.Parts {
		switch {
		case part.Call != nil:
			lines = append(lines, fmt.Sprintf("The agent calls %s %s", part.Call.Name, llm.QuoteEntry(part.Call.Arguments)))
		case part.Result != nil:
			lines = append(lines, fmt.Sprintf("%s answers: %s", part.Result.Name, llm.QuoteEntry(part.Result.Text)))
		case part.Text != "" && message.Role == llm.Assistant:
			lines = append(lines, "The agent says: "+llm.QuoteEntry(part.Text))
		case part.Text != "":
			lines = append(lines, "The agent is told: "+llm.QuoteEntry(part.Text))
		}
	}
	return strings.Join(lines, "\n")
}
