package review_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/review/judge"
)

const head = "0123456789abcdef0123456789abcdef01234567"

func TestCitationsOfDocuments(t *testing.T) {
	t.Parallel()
	sections := []judge.Section{{Number: 1, Text: "契約は、申込みと\n承諾で成立する。"}, {Number: 3, Text: "The gate is open all day."}}
	for answer, want := range map[string][]review.Citation{
		"何もありません。":                 {},
		"§1のとおり。":                  {{Text: "§1", Section: 1, State: review.Confirmed}},
		"§１「申込みと承諾で成立」です。":         {{Text: "§１", Section: 1, Quote: "申込みと承諾で成立", State: review.Confirmed}},
		"§1の「契約は…成立する」":            {{Text: "§1", Section: 1, Quote: "契約は…成立する", State: review.Confirmed}},
		"§1「成立する…契約は」":             {{Text: "§1", Section: 1, Quote: "成立する…契約は", State: review.Misquoted}},
		"「承諾」（§1）と「承諾」（§3）":        {{Text: "§1", Section: 1, Quote: "承諾", State: review.Confirmed}, {Text: "§3", Section: 3, Quote: "承諾", State: review.Misquoted}},
		`§3 "open all day" and §1`: {{Text: "§3", Section: 3, Quote: "open all day", State: review.Confirmed}, {Text: "§1", Section: 1, State: review.Confirmed}},
		`"is shut" (§3), see §2`:   {{Text: "§3", Section: 3, Quote: "is shut", State: review.Misquoted}, {Text: "§2", Section: 2, State: review.Missing}},
		"§1、§1、§1":                 {{Text: "§1", Section: 1, State: review.Confirmed}},
		"gate.go:1-2@0123":         {{Text: "gate.go:1-2@0123", Path: "gate.go", Start: 1, End: 2, Commit: "0123", State: review.Missing}},
	} {
		got := review.CheckCitations(answer, sections, "")
		if got == nil {
			got = []review.Citation{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", answer, diff)
		}
	}
}

// What is said about one citation of a section is not said about another one.
func TestMarks(t *testing.T) {
	t.Parallel()
	sections := []judge.Section{{Number: 1, Text: "Oil the gate."}}
	answer := `§1 "Oil the gate", not §1 "Paint it". See §1, §2 and gate.go:1@0123, and §1 "Oil the gate".`
	want := []review.Mark{
		{Section: 1, State: review.Confirmed}, {Section: 1, State: review.Misquoted}, {Section: 1, State: review.Confirmed},
		{Section: 2, State: review.Missing}, {Section: 1, State: review.Confirmed},
	}
	cited := review.CheckCitations(answer, sections, "")
	if diff := cmp.Diff(want, review.Marks(answer, cited)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if shown := cited[1].Shown(); shown != "§1「Paint it」" {
		t.Errorf("the wrong one is shown as %s", shown)
	}
	if diff := cmp.Diff([]review.Mark{{Section: 1}}, review.Marks("§1", nil)); diff != "" {
		t.Errorf("what was not checked (-want +got):\n%s", diff)
	}
}

const patch = `diff --git a/src/gate.go b/src/gate.go
--- a/src/gate.go
+++ b/src/gate.go
@@ -1,3 +1,4 @@
 package gate
-func Open() {}
+func Open() error { return nil }
+func Shut() {}
 // end
`

func sectionsOf(t *testing.T, diff, commit string) []judge.Section {
	t.Helper()
	paper, err := judge.PullPaper(judge.Pull{Commit: commit, Diff: diff})
	if err != nil {
		t.Fatal(err)
	}
	return paper.Sections
}

func TestCitationsOfPulls(t *testing.T) {
	t.Parallel()
	sections := sectionsOf(t, patch, head)
	for text, want := range map[string]review.CitationState{
		"`src/gate.go:2@0123456789ab`":                                  review.Confirmed,
		"src/gate.go:2-3@" + head + ` "func Shut() {}"`:                 review.Confirmed,
		`src/gate.go:2@01234567 "return nil"`:                           review.Confirmed,
		`src/gate.go:2@01234567 "return err"`:                           review.Misquoted,
		`§1 "func Open() {}"`:                                           review.Confirmed,
		"src/gate.go:2-9@01234567":                                      review.Missing,
		"src/gate.go:9@01234567":                                        review.Missing,
		"src/gate.go:0@01234567":                                        review.Missing,
		"src/gate.go:3-2@01234567":                                      review.Missing,
		"gate.go:2@01234567":                                            review.Missing,
		"src/gate.go:2@feedbeef":                                        review.Missing,
		"src/gate.go:99999999999999999999999@01234567 and nothing else": "",
	} {
		got := review.CheckCitations(text, sections, head)
		switch {
		case want == "" && len(got) == 0:
		case len(got) != 1 || got[0].State != want:
			t.Errorf("%s is %+v, want %s", text, got, want)
		}
	}
}
