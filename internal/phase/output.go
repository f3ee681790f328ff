package phase

import (
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
	// outputBytes and outputEvery say when collected output becomes an entry.
	outputBytes = 8 << 10
	outputEvery = time.Second
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

// LiveOutput puts what a program writes into the journal as it comes, in pieces that are worth
// an entry. It may be used by several goroutines.
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
	taken   int
	err     error // the first that there was; nothing is written after it
}

// Write takes a piece of output.
func (o *LiveOutput) Write(ctx context.Context, data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun.IsZero() {
		o.begun = time.Now()
	}
	if o.waiting.Len() == 0 {
		o.since = time.Now()
	}
	data = data[:min(len(data), o.most()-o.taken)]
	o.taken += len(data)
	o.waiting.Write(data)
	if time.Since(o.begun) >= o.Delay && (o.waiting.Len() >= outputBytes || time.Since(o.since) >= outputEvery) {
		o.flushLines(ctx)
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
	text := o.waiting.String()
	o.waiting.Reset()
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
	o.since = time.Now()
}

func (o *LiveOutput) append(ctx context.Context, text string) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if text == "" || o.err != nil {
		return
	}
	o.err = o.Journal.Append(ctx, task.NoteTaken, Entry{Phase: o.Phase, Status: NoteOutput, Call: o.Call, Text: text})
}

// watchCalls puts what the programs of a phase write into the journal as it comes, for those who watch
// the run. Calls that run programs are made one after the other.
func (r *run) watchCalls(ctx context.Context, of task.Phase) func(call llm.Call, piece []byte) {
	var mu sync.Mutex
	var live *LiveOutput
	return func(call llm.Call, piece []byte) {
		mu.Lock()
		defer mu.Unlock()
		if live == nil || live.Call.ID != call.ID {
			live = &LiveOutput{Journal: ownJournal{r}, Phase: of, Call: &llm.Call{ID: call.ID, Name: call.Name}, Delay: callDelay, Most: callOutput}
		}
		live.Write(ctx, piece)
	}
}

// ownJournal is the run's journal for what those see who watch it.
type ownJournal struct{ run *run }

// Append implements [Journal].
func (j ownJournal) Append(ctx context.Context, kind task.EventKind, entry Entry) error {
	return j.run.append(ctx, kind, entry)
}
