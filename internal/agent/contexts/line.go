package contexts

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"reflect"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// journalFile is the file that counts.
const journalFile = "journal.jsonl"

// Line is one entry of a journal as it is written.
type Line struct {
	Sequence   int64           `json:"sequence"` // 1, 2, 3… over the whole run
	Generation int64           `json:"generation"`
	Kind       task.EventKind  `json:"kind"`
	At         time.Time       `json:"at"`
	Data       json.RawMessage `json:"data"`

	end int64 // of the line in the file that it was read from
}

// event is the line as the journal of its task.
func (l Line) event(id task.ID) task.Event {
	return task.Event{
		Task: id, Generation: l.Generation, Source: task.FromAgent, Sequence: l.Sequence, Position: l.Sequence,
		Kind: l.Kind, At: l.At, Data: l.Data,
	}
}

// readLines reads a journal: the lines that are whole and follow each other, and
// how many bytes come after them that are worth nothing. A crash leaves such an
// end.
func readLines(name string) (lines []Line, torn int64, err error) {
	content, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	good := int64(0)
	for rest := content; ; {
		text, after, whole := bytes.Cut(rest, []byte{'\n'})
		line, is := parseLine(text)
		if !whole || !is || line.Sequence != int64(len(lines))+1 {
			return lines, int64(len(content)) - good, nil
		}
		good += int64(len(text)) + 1
		line.end = good
		lines = append(lines, line)
		rest = after
	}
}

// parseLine reports whether the text is a line of a journal.
func parseLine(text []byte) (line Line, is bool) {
	err := json.Unmarshal(text, &line)
	return line, err == nil && line.Kind != ""
}

// same reports whether a line of ours is an entry of the server, which may have
// written the same JSON in another way, and under a later generation, if it did
// not get it at once.
func same(line Line, event task.Event) bool {
	return line.Kind == event.Kind && sameJSON(line.Data, event.Data)
}

func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var left, right any
	return decode(a, &left) == nil && decode(b, &right) == nil && reflect.DeepEqual(left, right)
}

func decode(data json.RawMessage, into *any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return decoder.Decode(into)
}
