package agent

import (
	"context"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// streamBytes and streamEvery say when collected output becomes an entry.
	streamBytes = 8 << 10
	streamEvery = time.Second
	// streamWhole is how much output of one command goes into the journal. The
	// end of the output is there in any case, with the result.
	streamWhole = 2 << 20
	// longestLine is how much without the end of a line is kept waiting.
	longestLine = 64 << 10
)

// stream puts output into the journal as it comes, in pieces that are worth an
// entry. It is used by one goroutine.
type stream struct {
	journal phase.Journal
	waiting strings.Builder
	since   time.Time
	written int
	err     error // the first that there was; nothing is written after it
}

func (s *stream) write(ctx context.Context, data []byte) {
	if s.waiting.Len() == 0 {
		s.since = time.Now()
	}
	s.waiting.Write(data)
	if s.waiting.Len() >= streamBytes || time.Since(s.since) >= streamEvery {
		s.flushLines(ctx)
	}
}

// flushLines puts whole lines into the journal, so that no secret is in two entries
// by halves, where nobody would find it. What has no end of a line for long is put
// in all the same.
func (s *stream) flushLines(ctx context.Context) {
	text := s.waiting.String()
	at := strings.LastIndexByte(text, '\n') + 1
	if at == 0 && len(text) < longestLine {
		return
	}
	if at == 0 {
		at = len(text)
	}
	s.waiting.Reset()
	s.append(ctx, text[:at])
	s.waiting.WriteString(text[at:])
	s.since = time.Now()
}

// flush puts in what there is.
func (s *stream) flush(ctx context.Context) {
	text := s.waiting.String()
	s.waiting.Reset()
	s.append(ctx, text)
}

func (s *stream) append(ctx context.Context, text string) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if text == "" || s.err != nil || s.written >= streamWhole {
		return
	}
	s.written += len(text)
	s.err = s.journal.Append(ctx, task.NoteTaken, phase.Entry{Phase: task.Execution, Text: text})
}
