package phase

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
)

// NoteOutput is the status of a note that has what a program writes, as it comes.
const NoteOutput = "output"

const (
	// outputBytes says when there is so much output that it becomes an entry at once.
	outputBytes = 8 << 10
	// outputWhole is how much output of one command goes into the journal as it comes. The
	// end of the output is there in any case, with the result.
	outputWhole = 2 << 20
	// longestLine is how much without the end of a line is kept waiting.
	longestLine = 64 << 10
	// callOutput is how much output of a call of a tool goes into the journal as it comes, and
	// callDelay how long a call runs before it does: the result of a short one is there at once.
	callOutput = 256 << 10
	callDelay  = 2 * time.Second
)

// outputEvery is how long output waits for more before it becomes an entry, by how long the program
// has run: each entry is synced, sent and kept, and a program may run for hours.
func outputEvery(since time.Duration) time.Duration {
	switch {
	case since < 30*time.Second:
		return time.Second
	case since < 2*time.Minute:
		return 2 * time.Second
	case since < 10*time.Minute:
		return 5 * time.Second
	default:
		return 10 * time.Second
	}
}

// LiveOutput puts what a program writes into the journal as it comes, in pieces that are worth
// an entry. It may be used by several goroutines. Whoever uses it calls Stop when nothing more is to
// be written: until then, what has waited long enough is written without another Write.
type LiveOutput struct {
	Journal Journal
	Phase   task.Phase
	Call    *llm.Call     // that the output is of; nil if it is of no call of a tool
	Delay   time.Duration // from the first piece on, before which nothing is written
	Most    int           // bytes that are written; 0 means 2 MiB

	mu      sync.Mutex
	waiting strings.Builder
	begun   time.Time
	since   time.Time
	lines   bool        // a whole line waits
	timer   *time.Timer // that writes what waits; nil if none is set
	taken   int
	over    bool
	err     error // the first that there was; nothing is written after it
}

// Write takes a piece of output.
func (o *LiveOutput) Write(ctx context.Context, data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return
	}
	if o.begun.IsZero() {
		o.begun = time.Now()
	}
	if o.waiting.Len() == 0 {
		o.since = time.Now()
	}
	data = data[:min(len(data), o.most()-o.taken)]
	o.taken += len(data)
	o.waiting.Write(data)
	o.lines = o.lines || bytes.IndexByte(data, '\n') >= 0
	if time.Since(o.begun) >= o.Delay && (o.waiting.Len() >= outputBytes || o.waits() <= 0) {
		o.flushLines(ctx)
	}
	if o.timer == nil && o.lines {
		o.timer = time.AfterFunc(max(o.waits(), 0), func() { o.late(ctx) })
	}
}

// waits is how long what there is waits still.
func (o *LiveOutput) waits() time.Duration {
	return max(o.Delay-time.Since(o.begun), outputEvery(time.Since(o.begun))-time.Since(o.since))
}

// late writes what has waited long enough, for a program that is quiet now.
func (o *LiveOutput) late(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.timer = nil; !o.over {
		o.flushLines(ctx)
	}
}

// Stop ends the writing. What waits is dropped; see Flush.
func (o *LiveOutput) Stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	o.stopTimer()
}

func (o *LiveOutput) stopTimer() {
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
}

func (o *LiveOutput) most() int {
	if o.Most > 0 {
		return o.Most
	}
	return outputWhole
}

// Flush puts in what there is, and returns the first error that there was.
func (o *LiveOutput) Flush(ctx context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stopTimer()
	text := o.waiting.String()
	o.waiting.Reset()
	o.lines = false
	o.append(ctx, text)
	return o.err
}

// flushLines puts whole lines into the journal, so that no secret is in two entries
// by halves, where nobody would find it. What has no end of a line for long is put
// in all the same.
func (o *LiveOutput) flushLines(ctx context.Context) {
	text := o.waiting.String()
	at := strings.LastIndexByte(text, '\n') + 1
	if at == 0 && len(text) < longestLine {
		return
	}
	if at == 0 {
		at = len(text)
	}
	o.waiting.Reset()
	o.append(ctx, text[:at])
	o.waiting.WriteString(text[at:])
	o.lines = false
	o.since = time.Now()
}

func (o *LiveOutput) append(ctx context.Context, text string) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if text == "" || o.err != nil {
		return
	}
	o.err = o.Journal.Append(ctx, task.NoteTaken, Entry{Phase: o.Phase, Status: NoteOutput, Call: o.Call, Text: text})
}

// liveCalls are the calls of tools that are under way, with what their programs write.
type liveCalls struct {
	mu sync.Mutex
	of map[string]*LiveOutput // by the id of the call
}

// begin is called before a call, and end when it is over: its result has all of the output.
func (l *liveCalls) begin(call llm.Call, into *LiveOutput) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = make(map[string]*LiveOutput)
	}
	l.of[call.ID] = into
}

func (l *liveCalls) end(call llm.Call) {
	l.mu.Lock()
	live := l.of[call.ID]
	delete(l.of, call.ID)
	l.mu.Unlock()
	if live != nil {
		live.Stop()
	}
}

func (l *liveCalls) find(call llm.Call) *LiveOutput {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[call.ID]
}

// watchCalls puts what the programs of calls write into the journal as it comes, for those who watch
// the run.
func (r *run) watchCalls(ctx context.Context) func(call llm.Call, piece []byte) {
	return func(call llm.Call, piece []byte) {
		if live := r.calls.find(call); live != nil {
			live.Write(ctx, piece)
		}
	}
}

// newCallOutput is for the output of a call in a phase.
func (r *run) newCallOutput(call llm.Call, of task.Phase) *LiveOutput {
	return &LiveOutput{Journal: ownJournal{r}, Phase: of, Call: &llm.Call{ID: call.ID, Name: call.Name}, Delay: callDelay, Most: callOutput}
}

// ownJournal is the run's journal for what those see who watch it.
type ownJournal struct{ run *run }

// Append implements [Journal].
func (j ownJournal) Append(ctx context.Context, kind task.EventKind, entry Entry) error {
	return j.run.append(ctx, kind, entry)
}
