package llm_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/llm"
)

func readEvents(body io.Reader) (events []string, failed error) {
	for event, err := range llm.Events(body) {
		if err != nil {
			return events, err
		}
		events = append(events, event.Name+"|"+string(event.Data))
	}
	return events, nil
}

func TestEvents(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"data: a\n\ndata:b\n\n":                           {"|a", "|b"},
		"event: x\ndata: a\n\n: note\nid: 7\ndata: b\n\n": {"x|a", "|b"},
		"data: a\r\ndata:  b\r\n\r\ndata: c\r\rdata\n\n":  {"|a\n b", "|c", "|"},
		"event: x\n\ndata: a\n\n\n\n":                     {"|a"},
		"data: whole\n\ndata: broken":                     {"|whole"},
		"data: whole\n\ndata: broken\n":                   {"|whole"},
		"":                                                nil,
	} {
		for name, reader := range map[string]io.Reader{"at once": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text))} {
			got, err := readEvents(reader)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%q %s: %v %s", text, name, err, diff)
			}
		}
	}
}

func TestEventsThatAreNone(t *testing.T) {
	t.Parallel()
	_, err := readEvents(strings.NewReader("<html>sign in</html>\n"))
	if unreadable, ok := errors.AsType[*llm.UnreadableError](err); !ok || !strings.Contains(unreadable.Text, "sign in") {
		t.Errorf("a page gives %v", err)
	}
	cut := errors.New("cut")
	events, err := readEvents(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(cut)))
	if !errors.Is(err, cut) || len(events) != 1 {
		t.Errorf("a stream that breaks off gives %v and %v", events, err)
	}
}

// endless is a line that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]io.Reader{
		"one line":   endless{},
		"many lines": io.MultiReader(strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 70)), endless{}),
	} {
		_, err := readEvents(body)
		if _, ok := errors.AsType[*llm.UnreadableError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
