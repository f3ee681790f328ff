package llm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"

	"github.com/toryo-dev/toryo/internal/textfmt"
)

// longestEvent is the size above which an event is not read. Providers send calls
// and pictures whole.
const longestEvent = 64 << 20

// Event is one of a stream of server-sent events.
type Event struct {
	Name string // "" when it has none
	Data []byte
}

// Decode reads the event's data as JSON.
func (e Event) Decode(into any) error {
	if err := json.Unmarshal(e.Data, into); err != nil {
		return &UnreadableError{Text: beginning(e.Data), Err: err}
	}
	return nil
}

// UnreadableError says that an answer is not in the format that it should be in.
type UnreadableError struct {
	Text string // what came instead
	Err  error
}

// Error says what is wrong, and shows the beginning of what came.
func (e *UnreadableError) Error() string {
	return e.Err.Error() + ": " + textfmt.Shorten(textfmt.OneLine(e.Text), longestDetail)
}

// Unwrap returns the cause.
func (e *UnreadableError) Unwrap() error { return e.Err }

var (
	errNoEvents     = errors.New("not an event stream")
	errEventTooLong = errors.New("an event is too long")
	// errAnswerTooLong is far beyond what a model can say.
	errAnswerTooLong = errors.New("the answer is too long")
)

// Events reads server-sent events. An event that breaks off is left out. A stream
// with something else in it and no event is an [*UnreadableError].
func Events(body io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		lines := bufio.NewScanner(body)
		lines.Buffer(make([]byte, 0, 64<<10), longestEvent)
		lines.Split(splitLines)
		var reader eventReader
		for lines.Scan() {
			event, complete, err := reader.line(lines.Bytes())
			if err != nil {
				yield(Event{}, err)
				return
			}
			if complete && !yield(event, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			if errors.Is(err, bufio.ErrTooLong) {
				err = &UnreadableError{Err: errEventTooLong}
			}
			yield(Event{}, err)
		} else if !reader.found && len(reader.other) > 0 {
			yield(Event{}, &UnreadableError{Text: string(reader.other), Err: errNoEvents})
		}
	}
}

// eventReader puts events together from lines.
type eventReader struct {
	event Event
	begun bool   // the event has data
	found bool   // there was an event
	other []byte // what is no field of an event, up to a limit
}

func (r *eventReader) line(line []byte) (event Event, complete bool, err error) {
	if len(line) == 0 {
		event, complete = r.event, r.begun
		r.event, r.begun = Event{}, false
		r.found = r.found || complete
		return event, complete, nil
	}
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "data":
		if len(r.event.Data)+len(value) > longestEvent {
			return Event{}, false, &UnreadableError{Err: errEventTooLong}
		}
		if r.begun {
			r.event.Data = append(r.event.Data, '\n')
		}
		r.begun = true
		r.event.Data = append(r.event.Data, value...)
	case "event":
		r.event.Name = string(value)
	case "", "id", "retry": // a comment, and what is for browsers
	default:
		longest := longestErrorBody
		if bytes.HasPrefix(r.other, []byte("{")) { // it may be a whole answer in place of a stream
			longest = longestEvent
		}
		if !r.found && len(r.other) < longest {
			r.other = append(append(r.other, line...), '\n')
		}
	}
	return Event{}, false, nil
}

// splitLines ends lines by \n, \r\n or \r, as event streams may.
func splitLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	end := bytes.IndexAny(data, "\r\n")
	switch {
	case end < 0 && atEOF && len(data) > 0:
		return len(data), data, nil
	case end < 0:
		return 0, nil, nil
	case data[end] == '\n':
		return end + 1, data[:end], nil
	case end+1 < len(data) && data[end+1] == '\n':
		return end + 2, data[:end], nil
	case end+1 == len(data) && !atEOF:
		return 0, nil, nil // \n may follow
	}
	return end + 1, data[:end], nil
}
