package judge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/toryo-dev/toryo/internal/review/judge"
)

func TestParseSections(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer string
		want   []judge.Section
	}{
		"in order":               {"$$[1]\nfirst\n$$[2] second\nmore\n\n$$[3]third", []judge.Section{{1, "first"}, {2, "second\nmore"}, {3, "third"}}},
		"no markers":             {"only text\nin two lines", nil},
		"empty":                  {"", nil},
		"text before the first":  {"preface\n$$[1]\nfirst", []judge.Section{{1, "first"}}},
		"out of order":           {"$$[3]\nc\n$$[1]\na\n$$[2]\nb", []judge.Section{{1, "a"}, {2, "b"}, {3, "c"}}},
		"repeated":               {"$$[1]\na\n$$[2]\nb\n$$[1]\nagain", []judge.Section{{1, "a\n\nagain"}, {2, "b"}}},
		"full-width digits":      {"$$[１２]\nx", []judge.Section{{12, "x"}}},
		"leading zeros":          {"$$[007]\nx", []judge.Section{{7, "x"}}},
		"Windows line ends":      {"$$[1]\r\na\r\nb\r\n$$[2]\r\nc", []judge.Section{{1, "a\r\nb"}, {2, "c"}}},
		"an empty section":       {"$$[1]\n$$[2]\nb", []judge.Section{{1, ""}, {2, "b"}}},
		"a marker in the middle": {"$$[1]\na $$[2] b", []judge.Section{{1, "a $$[2] b"}}},
		"a marker behind spaces": {"$$[1]\n $$[2] b", []judge.Section{{1, " $$[2] b"}}},
		"not a number":           {"$$[1]\na\n$$[x]\nb\n$$[-1]\nc\n$$[]\nd\n$$[2", []judge.Section{{1, "a\n$$[x]\nb\n$$[-1]\nc\n$$[]\nd\n$$[2"}}},
		"too large a number":     {"$$[1]\na\n$$[99999999999999999999]\nb", []judge.Section{{1, "a\n$$[99999999999999999999]\nb"}}},
	} {
		if diff := cmp.Diff(test.want, judge.ParseSections(test.answer)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestManyAndLargeSections(t *testing.T) {
	t.Parallel()
	var answer strings.Builder
	large := strings.Repeat("あ\n", 25_000) // 100 kB, in many lines
	for n := 1; n <= 1000; n++ {
		fmt.Fprintf(&answer, "$$[%d]\nsection %d\n", n, n)
	}
	answer.WriteString("$$[1001]\n" + large)
	sections := judge.ParseSections(answer.String())
	if len(sections) != 1001 || sections[499].Text != "section 500" || sections[1000].Text != strings.TrimRight(large, "\n") {
		t.Errorf("%d sections", len(sections))
	}
}

// A number that is used again and again costs no more than others: if each time copied the
// section this would not end within the time of a test.
func TestNumberThatIsUsedOften(t *testing.T) {
	t.Parallel()
	const times = 3_000_000
	sections := judge.ParseSections(strings.Repeat("$$[1]a\n", times))
	if len(sections) != 1 || len(sections[0].Text) != 3*times-2 {
		t.Errorf("%d sections", len(sections))
	}
}

// What is marked is read back, whatever the texts are.
func TestMarkIsReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfNDistinct(rapid.IntRange(0, 2000), 0, 20, rapid.ID[int]).Draw(t, "numbers")
		slices.Sort(numbers)
		var sections []judge.Section
		for _, number := range numbers {
			lines := rapid.SliceOfN(rapid.SampledFrom([]string{"", "x", " y", "$$[3]", "$$[3] z", "$$[a]", "§2"}), 0, 6).Draw(t, "lines")
			text := strings.Trim(strings.Join(lines, "\n"), "\n")
			sections = append(sections, judge.Section{Number: number, Text: text})
		}
		got := judge.ParseSections(judge.Mark(sections))
		for i := range sections { // a line like a marker gets a space in front
			sections[i].Text = strings.ReplaceAll("\n"+sections[i].Text, "\n$$[3]", "\n $$[3]")[1:]
			if i < len(got) {
				sections[i].Text, got[i].Text = strings.TrimSpace(sections[i].Text), strings.TrimSpace(got[i].Text)
			}
		}
		if diff := cmp.Diff(sections, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestMarkParagraphs(t *testing.T) {
	t.Parallel()
	got := judge.ParseSections(judge.MarkParagraphs("one\ntwo\n\n\n\nthree\r\n\r\nfour\n"))
	if diff := cmp.Diff([]judge.Section{{1, "one\ntwo"}, {2, "three"}, {3, "four"}}, got); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"", " \n\n ", "$$[4]\nmarked\n\nalready"} {
		if judge.MarkParagraphs(text) != text {
			t.Errorf("%q was changed", text)
		}
	}
}
