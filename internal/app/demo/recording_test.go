package demo

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
)

// recorded is the text of docs/demo.svg, line by line as it was printed.
func recorded(t *testing.T) (lines []string) {
	t.Helper()
	file, err := os.Open("../../../docs/demo.svg")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	inText := false
	for reader := xml.NewDecoder(file); ; {
		token, err := reader.Token()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			isClock := slices.ContainsFunc(token.Attr, func(a xml.Attr) bool { return a.Value == "clock" })
			if inText = token.Name.Local == "text" && !isClock; inText {
				lines = append(lines, "")
			}
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				lines[len(lines)-1] += string(token)
			}
		}
	}
}

// TestRecordingTellsTheStory: the recording in the README shows the story as it is.
// If this fails, run scripts/recording.
func TestRecordingTellsTheStory(t *testing.T) {
	t.Parallel()
	lines := recorded(t)
	var phases []string
	for _, line := range lines {
		if name, found := strings.CutPrefix(line, "== "); found {
			phases = append(phases, name)
		}
	}
	var known []string
	for _, phase := range task.Phases {
		known = append(known, phase.DisplayName())
	}
	known = slices.DeleteFunc(known, func(name string) bool { return !slices.Contains(phases, name) })
	if len(phases) < 5 || !slices.Equal(phases, known) {
		t.Errorf("the recording has the phases %q, and the program has %q", phases, known)
	}
	title, _, _ := strings.Cut(issue, "\n")
	text := strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
	for _, want := range []string{
		"$ toryo demo", "The answers come from a script", Repository, title, "the plan:", "is ready in a sandbox of", "before any change,",
		strings.TrimSpace(comment), "comments included at step", "Pull request #", "Its diff:", "waits for a review", " reviews it: ", "Done in",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the recording lacks %q", want)
		}
	}
}
