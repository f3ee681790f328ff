package progress_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toryo-dev/toryo/internal/agent/progress"
	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
)

type entry struct {
	kind  task.EventKind
	entry phase.Entry
}

func clock() time.Time { return time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC) }

// story is a run in the middle of its work.
func story() []entry {
	return []entry{
		{task.PhaseChanged, phase.Entry{Phase: task.PrePlanning, Status: phase.PhaseActive}},
		{task.PhaseChanged, phase.Entry{Phase: task.PrePlanning, Status: phase.PhaseCompleted}},
		{task.PhaseChanged, phase.Entry{Phase: task.Planning, Status: phase.PhaseActive}},
		{task.Planned, phase.Entry{Plan: &phase.Plan{Revision: 1, ActionPlan: phase.Actions{Actions: []phase.Action{{ID: "1", What: "Look", Done: true}, {ID: "2", What: "Fix"}}}}}},
		{task.PhaseChanged, phase.Entry{Phase: task.Planning, Status: phase.PhaseCompleted}},
		{task.PhaseChanged, phase.Entry{Phase: task.EnvironmentSetup, Status: phase.PhaseActive}},
		{task.Prepared, phase.Entry{Setup: &phase.SetupEntry{Handover: environment.Handover{EnvironmentName: "go", SetupStatus: environment.Failed}}}},
		{task.PhaseChanged, phase.Entry{Phase: task.EnvironmentSetup, Status: phase.PhaseFailed}},
		{task.NoteTaken, phase.Entry{Text: "No network.", Status: "warning"}},
		{task.PhaseChanged, phase.Entry{Phase: task.Execution, Status: phase.PhaseActive}},
		{task.ModelUsed, phase.Entry{Step: 4, Usage: &phase.Usage{Model: "m", Usage: llm.Usage{Input: 1000, Cached: 800, Output: 50}, Cost: 12_300}}},
		{task.ToolCalled, phase.Entry{Step: 4, Call: &llm.Call{ID: "1", Name: "run"}}},
		{task.ToolCalled, phase.Entry{Step: 4, Call: &llm.Call{ID: "1", Name: "run"}, Result: &phase.CallResult{Failed: true}}},
		{task.SignalTaken, phase.Entry{Step: 5, Signal: &phase.SignalEntry{Signal: task.SignalComments, Position: 3, Comments: []task.CommentEntry{
			{Comment: task.Comment{ID: "c1", Author: "ann"}, Position: 1, Change: "new"}, {Comment: task.Comment{ID: "c2", Author: "eve"}, Position: 2, Change: "new", Refused: task.ReasonNoWriteAccess}, {Comment: task.Comment{ID: "c3", Author: "ann"}, Position: 3, Change: "deleted"},
		}}}},
		{task.Saved, phase.Entry{Commit: "0123456789abcdef0123"}},
		{task.NoteTaken, phase.Entry{Text: "The parser is fixed."}},
	}
}

func work() phase.Work {
	return phase.Work{Title: "Fix the parser", Role: "BACKENDCODER", Branch: "toryo/3"}
}

func made(t *testing.T, options progress.Options, entries []entry) *progress.Comment {
	t.Helper()
	options.Now = clock
	c, err := progress.New(options)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		c.Add(e.kind, e.entry)
	}
	return c
}

const english = `## Toryo is working

**Task**: Fix the parser  
**Role**: BACKENDCODER  
**Branch**: ` + "`toryo/3`" + `  
**Environment**: go, setup: failed; the work continues with restrictions

✔ Pre Planning → ✔ Planning → ✖ Environment Setup → **▶ Execution** → Reflection → Verification → Complete

### Plan (1 of 2 done)

- [x] Look
- [ ] Fix

### Warnings

- No network.

### Latest notes

- The parser is fixed.

**Steps**: 5, **tool calls**: 1 (failed: 1), **tokens**: 1000 in (800 from the cache) and 50 out, **cost**: 0.0123

### Comments

| Comment | Author | Status |
| --- | --- | --- |
| c1 | ann | included at step 5 |
| c2 | eve | not included: its author has no write access to the repository |
| c3 | ann | deleted; removed at step 5 |

<details>
<summary>History (12)</summary>

- 12:30:00 Pre Planning started
`

func TestTheComment(t *testing.T) {
	t.Parallel()
	text := made(t, progress.Options{Work: work()}, story()).Text()
	if !strings.HasPrefix(text, english) {
		t.Errorf("it is\n%s\nwant it to begin with\n%s", text, english)
	}
	for _, line := range []string{"- 12:30:00 Environment Setup failed\n", "- 12:30:00 Work in progress saved as 0123456789\n", "- 12:30:00 Comments read: 3\n", "\n</details>\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("%q is missing in\n%s", line, text)
		}
	}
}

// Work that is saved again after it was lost is told of again, and its loss is not a save.
func TestLostWorkIsNoSave(t *testing.T) {
	t.Parallel()
	entries := story()
	for _, commit := range []string{"", "0123456789abcdef0123", "0123456789abcdef0123"} {
		entries = append(entries, entry{task.Saved, phase.Entry{Commit: commit}})
	}
	text := made(t, progress.Options{Work: work(), Language: task.English}, entries).Text()
	if count := strings.Count(text, "Work in progress saved as "); count != 2 {
		t.Errorf("%d saves are told of:\n%s", count, text)
	}
}

func TestTheCommentInJapanese(t *testing.T) {
	t.Parallel()
	w := work()
	w.Title = "パーサを直す"
	text := made(t, progress.Options{Work: w}, story()).Text()
	for _, part := range []string{
		"## Toryo が作業中です", "**タスク**: パーサを直す", "**役割**: BACKENDCODER", "### 計画（1/2 完了）", "### 警告", "### 最近のメモ",
		"**▶ 実行**", "計画前調査を開始しました", "ステップ 5 で取り込みました", "対象外: 投稿者にリポジトリへの書き込み権限がありません", "履歴（12 件）", "環境構築: 失敗",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}

func TestHeadings(t *testing.T) {
	t.Parallel()
	stop := entry{task.SignalTaken, phase.Entry{Signal: &phase.SignalEntry{Signal: task.SignalStop, Reason: task.ReasonUnassigned}}}
	pause := entry{task.SignalTaken, phase.Entry{Signal: &phase.SignalEntry{Signal: task.SignalPause, Reason: task.ReasonAwaitingAnswer}}}
	on := entry{task.NoteTaken, phase.Entry{Text: "on"}}
	for _, test := range []struct {
		last  []entry
		state task.State
		want  []string
	}{
		{nil, "", []string{"## Toryo is working"}},
		{[]entry{stop}, "", []string{"## Toryo was stopped", "**Reason**: the bot was unassigned"}},
		{[]entry{pause}, "", []string{"## Toryo is paused", "**Reason**: a question is waiting for an answer"}},
		{[]entry{pause, on}, "", []string{"## Toryo is working"}},
		{nil, task.Done, []string{"## Toryo has finished"}},
		{nil, task.Failed, []string{"## Toryo could not finish"}},
		{nil, task.Stopped, []string{"## Toryo was stopped"}},
		{nil, task.Paused, []string{"## Toryo is paused"}},
	} {
		c := made(t, progress.Options{Work: work()}, append(story(), test.last...))
		if test.state != "" {
			c.End(test.state, "")
		}
		for _, want := range test.want {
			if text := c.Text(); !strings.Contains(text, want) {
				t.Errorf("%q is missing in\n%s", want, text)
			}
		}
	}
}

func TestAScriptedModelIsSaid(t *testing.T) {
	t.Parallel()
	used := []entry{{task.ModelUsed, phase.Entry{Step: 1, Usage: &phase.Usage{Scripted: true}}}}
	for language, want := range map[task.Language]string{"en": "The answers come from a script", "ja": "回答はモデルではなくスクリプトによるものです"} {
		if text := made(t, progress.Options{Work: work(), Language: language}, used).Text(); !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
		if text := made(t, progress.Options{Work: work(), Language: language}, story()).Text(); strings.Contains(text, want) {
			t.Errorf("a real model is called scripted:\n%s", text)
		}
	}
}

// Wherever the run goes on, the comment is the same.
func TestThePastMakesTheSameComment(t *testing.T) {
	t.Parallel()
	w := work()
	for i, e := range story() {
		data, err := json.Marshal(e.entry)
		if err != nil {
			t.Fatal(err)
		}
		w.Past = append(w.Past, task.Event{Source: task.FromAgent, Position: int64(i) + 1, Kind: e.kind, At: clock(), Data: data})
	}
	w.Past = append(w.Past, task.Event{Source: task.FromServer, Kind: task.StateChanged, Data: json.RawMessage(`{"trigger":"x"}`)})
	if live, past := made(t, progress.Options{Work: work()}, story()).Text(), made(t, progress.Options{Work: w}, nil).Text(); live != past {
		t.Errorf("live\n%s\nfrom the past\n%s", live, past)
	}
	w.Past[0].Data = json.RawMessage(`{`)
	if _, err := progress.New(progress.Options{Work: w}); task.CodeOf(err) != task.Invalid {
		t.Errorf("a bad past: %v", err)
	}
}

// What a forge would give a meaning to, were it not taken out of the text.
var meanings = []*regexp.Regexp{
	regexp.MustCompile(`(^|[^\\])[@#!~%$^][0-9A-Za-z]`), // mentions and references
	regexp.MustCompile(`<[^/ds]|<(d[^e]|s[^u])`),        // markup other than ours
	regexp.MustCompile(`\]\(|!\[`),
	regexp.MustCompile(`(?m)^/\w`), // quick actions
	regexp.MustCompile("```"),
}

func TestTextOfOthersHasNoMeaning(t *testing.T) {
	t.Parallel()
	hostile := []string{
		"@everyone", "<script>alert(1)</script>", "</details>", "[a](javascript:b)", "![x](http://y)", "#1 fixes #2", "!3 ~bug %4 $5 ^6 &7",
		"```\n", "`", "| a | b |", "\n/close\n", "\n# heading", "<!-- toryo -->", "-->", "\x1b[31m", "\u202eevil", "\n- [x] done", "\\@all", "&commat;all",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(hostile), 1, 6).Draw(t, "hostile"), rapid.SampledFrom([]string{"", " ", "\n"}).Draw(t, "between"))
		w := phase.Work{Title: text, Role: task.Role(text)}
		c, err := progress.New(progress.Options{Work: w, Now: clock, Language: "en"})
		if err != nil {
			t.Fatal(err)
		}
		c.Add(task.Planned, phase.Entry{Plan: &phase.Plan{ActionPlan: phase.Actions{Actions: []phase.Action{{What: text}}}}})
		c.Add(task.NoteTaken, phase.Entry{Text: text})
		c.Add(task.NoteTaken, phase.Entry{Text: text, Status: "warning"})
		c.Add(task.Prepared, phase.Entry{Setup: &phase.SetupEntry{Handover: environment.Handover{EnvironmentName: text}}})
		c.Add(task.SignalTaken, phase.Entry{Signal: &phase.SignalEntry{Signal: task.SignalComments, Comments: []task.CommentEntry{{Comment: task.Comment{ID: text, Author: text}, Refused: task.Reason(text)}}}})
		shown := c.Text()
		for _, meaning := range meanings {
			if found := meaning.FindString(shown); found != "" {
				t.Fatalf("%q means something in\n%s", found, shown)
			}
		}
		if strings.Count(shown, "<details>") != 1 || strings.Count(shown, "</details>") != 1 || strings.Count(shown, "- [x]") != 0 {
			t.Fatalf("the text broke out:\n%s", shown)
		}
		for line := range strings.Lines(shown) {
			if strings.HasPrefix(line, "| ") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 4 {
				t.Fatalf("the row of the table broke: %s", line)
			}
		}
	})
}

func TestTheCommentHasALimit(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("長い text @all <b> ", 200)
	for _, limit := range []int{2000, 5000, 20_000, 50_000} {
		c := made(t, progress.Options{Work: phase.Work{Title: long}, Limit: limit}, nil)
		plan := &phase.Plan{}
		for i := range 500 {
			plan.ActionPlan.Actions = append(plan.ActionPlan.Actions, phase.Action{What: fmt.Sprint(i, long)})
		}
		c.Add(task.Planned, phase.Entry{Plan: plan})
		for i := range 1000 {
			c.Add(task.NoteTaken, phase.Entry{Text: long, Status: map[bool]string{true: "warning"}[i%2 == 0]})
			c.Add(task.SignalTaken, phase.Entry{Signal: &phase.SignalEntry{Signal: task.SignalComments, Comments: []task.CommentEntry{{Comment: task.Comment{ID: fmt.Sprint(i), Author: "a"}}}}})
		}
		text := c.Text()
		if len(text) > limit {
			t.Errorf("%d bytes, the limit is %d", len(text), limit)
		}
		if limit == 50_000 && !strings.Contains(text, "500") {
			t.Error("it does not say how long the plan is")
		}
		if strings.Count(text, "<details>") != strings.Count(text, "</details>") {
			t.Error("the history is not closed")
		}
	}
}

type failing struct{ err error }

func (f failing) Append(context.Context, task.EventKind, phase.Entry) error { return f.err }

// Only what is in the journal is shown.
func TestAnEntryThatWasNotWrittenIsNotShown(t *testing.T) {
	t.Parallel()
	c := made(t, progress.Options{Work: work()}, nil)
	want := errors.New("the disk is full")
	if err := c.Journal(failing{want}).Append(t.Context(), task.NoteTaken, phase.Entry{Text: "never"}); !errors.Is(err, want) {
		t.Errorf("the journal's error is %v", err)
	}
	if err := c.Journal(failing{nil}).Append(t.Context(), task.NoteTaken, phase.Entry{Text: "written"}); err != nil {
		t.Error(err)
	}
	if text := c.Text(); strings.Contains(text, "never") || !strings.Contains(text, "written") {
		t.Errorf("shown is\n%s", text)
	}
}

// A reflection is within execution, which is the phase that is shown when it is over.
func TestThePhaseAfterAReflection(t *testing.T) {
	t.Parallel()
	change := func(in task.Phase, status string) entry {
		return entry{task.PhaseChanged, phase.Entry{Phase: in, Status: status}}
	}
	c := made(t, progress.Options{Work: work()}, []entry{
		change(task.Execution, phase.PhaseActive), change(task.Reflection, phase.PhaseActive), change(task.Reflection, phase.PhaseCompleted),
	})
	if text := c.Text(); !strings.Contains(text, "**▶ Execution**") || strings.Contains(text, "▶ Reflection") {
		t.Errorf("the comment says\n%s", text)
	}
}
