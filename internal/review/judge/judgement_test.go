package judge_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/task"
)

func TestParseJudgementIsLenient(t *testing.T) {
	t.Parallel()
	got, err := judge.ParseJudgement([]byte(`{
		"weaknesses": [{"text": "w", "paragraph_numbers": ["3", "４", " §5 ", 6.0]}, "only a text", null],
		"unknown": {"left": "alone"},
		"overall_review": "全体",
		"strengths": [{"text": "s", "paragraph_number": "2"}, {"text": "both", "paragraph_number": 1, "paragraph_numbers": [1, 2]}],
		"important_points": null,
		"future_considerations": [{"text": "list in the singular", "paragraph_number": [7, 8]}, {"text": "single in the plural", "paragraph_numbers": 9}]
	}`))
	if err != nil {
		t.Fatal(err)
	}
	type item struct {
		Field, Text string
		Numbers     []int
	}
	var items []item
	for _, one := range got.Items {
		items = append(items, item{one.Field, one.Text(), one.Numbers})
	}
	want := []item{
		{"weaknesses", "w", []int{3, 4, 5, 6}}, {"weaknesses", "only a text", nil},
		{"strengths", "s", []int{2}}, {"strengths", "both", []int{1, 2}},
		{"future_considerations", "list in the singular", []int{7, 8}}, {"future_considerations", "single in the plural", []int{9}},
	}
	if diff := cmp.Diff(want, items); diff != "" || got.Overall != "全体" {
		t.Errorf("%q, items (-want +got):\n%s", got.Overall, diff)
	}
	if _, err := judge.ParseJudgement([]byte(`{}`)); err != nil {
		t.Errorf("everything may be missing: %v", err)
	}
}

func TestParseJudgementRefusesNonsense(t *testing.T) {
	t.Parallel()
	for text, place := range map[string]string{
		``: "object", `[]`: "object", `"x"`: "object", `null`: "object", `{`: "object", `{"a"}`: "object", `{} {}`: "follows",
		`{"overall_review": 1}`:                                    "overall_review",
		`{"overall_review": ["x"]}`:                                "overall_review",
		`{"strengths": {"text": "x"}}`:                             "strengths",
		`{"strengths": "x"}`:                                       "strengths",
		`{"weaknesses": [1]}`:                                      "weaknesses",
		`{"weaknesses": [[]]}`:                                     "weaknesses",
		`{"weaknesses": [{"paragraph_numbers": "three"}]}`:         "weaknesses.paragraph_numbers",
		`{"weaknesses": [{"paragraph_numbers": [1.5]}]}`:           "weaknesses.paragraph_numbers",
		`{"weaknesses": [{"paragraph_numbers": [null]}]}`:          "weaknesses.paragraph_numbers",
		`{"weaknesses": [{"paragraph_number": {"n": 1}}]}`:         "weaknesses.paragraph_number",
		`{"weaknesses": [{"paragraph_number": true}]}`:             "weaknesses.paragraph_number",
		`{"important_points": [{"paragraph_numbers": [1e300]}]}`:   "important_points.paragraph_numbers",
		`{"future_considerations": [{"paragraph_number": "1-3"}]}`: "future_considerations.paragraph_number",
	} {
		if _, err := judge.ParseJudgement([]byte(text)); task.CodeOf(err) != task.Invalid || !strings.Contains(err.Error(), place) {
			t.Errorf("%s gives %v; want an invalid that names %s", text, err, place)
		}
	}
}

func TestRelated(t *testing.T) {
	t.Parallel()
	j, err := judge.ParseJudgement([]byte(`{
		"important_points": [{"text": "p", "paragraph_numbers": [3]}],
		"strengths": [{"text": "a", "paragraph_numbers": [1, 3]}, {"text": "b", "paragraph_number": 2}, {"text": "none"}],
		"weaknesses": [{"text": "a", "paragraph_numbers": [1, 3]}, {"text": "c", "paragraph_number": "9"}, {"text": "d", "paragraph_number": 1}]
	}`))
	if err != nil {
		t.Fatal(err)
	}
	texts := func(numbers ...int) string {
		var all []string
		for _, item := range j.Related(numbers) {
			all = append(all, item.Field[:1]+":"+item.Text())
		}
		return strings.Join(all, " ")
	}
	for want, numbers := range map[string][]int{
		"i:p s:a w:d": {1, 3}, // in the order of the JSON, each once although it names both and stands there twice
		"s:b":         {2}, "w:c": {9}, "": {4}, "i:p s:a s:b w:c w:d": {3, 9, 2, 1, 1},
	} {
		if got := texts(numbers...); got != want {
			t.Errorf("%v gives %q, want %q", numbers, got, want)
		}
	}
}
