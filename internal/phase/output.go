package phase

import (
	"context"
	"strings"
	"sync"
	"time"

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
)

// LiveOutput puts what a program writes into the journal as it comes, in pieces that are worth
// an entry. It may be used by several goroutines.
type LiveOutput struct {
	Journal Journal
	Phase   task.Phase

	mu      sync.Mutex
	waiting strings.Builder
	since   time.Time
	written int
	err     error // the first that there was; nothing is written after it
}

// Write takes a piece of output.
func (o *LiveOutput) Write(ctx context.Context, data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting.Len() == 0 {
		o.since = time.Now()
	}
	o.waiting.Write(data)
	if o.waiting.Len() >= outputBytes || time.Since(o.since) >= outputEvery {
		o.flushLines(ctx)
	}
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
	if text == "" || o.err != nil || o.written >= outputWhole {
		return
	}
	o.written += len(text)
	o.err = o.Journal.Append(ctx, task.NoteTaken, Entry{Phase: o.Phase, Status: NoteOutput, Text: text})
}
