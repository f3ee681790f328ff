package task

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestKeyIsReadBackAsWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		key := Key{
			Forge:      rapid.SampledFrom(Forges).Draw(r, "forge"),
			Repository: rapid.StringMatching(`[a-z0-9._-]{1,9}(/[a-z0-9_-]{1,9}){1,3}`).Filter(func(s string) bool { return validateRepository(s) == nil }).Draw(r, "repository"),
			Kind:       rapid.SampledFrom([]ItemKind{Issue, Pull}).Draw(r, "kind"),
			Number:     rapid.Int64Range(1, 1<<40).Draw(r, "number"),
		}
		back, err := ParseKey(key.String())
		if err != nil || back != key {
			r.Fatalf("%s came back as %+v, %v", key, back, err)
		}
	})
}

func TestBadKeysAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "github", "github:", "github:owner/name", "github:owner/name#", "github:owner/name#x",
		"github:owner/name#0", "github:owner/name#-1", "github:name#1", "github:/name#1", "github:owner/../x#1",
		"svn:owner/name#1", "github:owner/na me#1", "github:owner/name#99999999999999999999",
	} {
		if key, err := ParseKey(text); CodeOf(err) != Invalid {
			t.Errorf("ParseKey(%q) = %+v, %v; want an error with code invalid", text, key, err)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add("github:owner/name#12")
	f.Add("gitlab:a/b/c!3")
	f.Fuzz(func(t *testing.T, text string) {
		key, err := ParseKey(text)
		if err != nil {
			return
		}
		if back, err := ParseKey(key.String()); err != nil || back != key {
			t.Fatalf("%q was read as %+v, which comes back as %+v, %v", text, key, back, err)
		}
	})
}

// The phases and their display names are the specification's.
func TestPhases(t *testing.T) {
	t.Parallel()
	want := []struct{ phase, name string }{
		{"pre_planning", "Pre Planning"},
		{"planning", "Planning"},
		{"environment_setup", "Environment Setup"},
		{"execution", "Execution"},
		{"reflection", "Reflection"},
		{"verification", "Verification"},
		{"complete", "Complete"},
	}
	if len(Phases) != len(want) {
		t.Fatalf("there are %d phases", len(Phases))
	}
	for i, w := range want {
		if string(Phases[i]) != w.phase || Phases[i].DisplayName() != w.name || !Phases[i].Valid() {
			t.Errorf("phase %d is %s, shown as %q", i+1, Phases[i], Phases[i].DisplayName())
		}
	}
	if Phase("lunch").Valid() {
		t.Error("lunch is a phase")
	}
}

// The label texts are the specification's.
func TestDefaultLabels(t *testing.T) {
	t.Parallel()
	want := map[State]string{
		Queued:  "coding agent",
		Running: "coding agent processing",
		Done:    "coding agent done",
		Paused:  "coding agent paused",
		Stopped: "coding agent stopped",
		Failed:  "coding agent failed",
	}
	names := DefaultLabelNames()
	for state, text := range want {
		if names[state.Label()] != text {
			t.Errorf("%s is shown as %q", state, names[state.Label()])
		}
	}
}

func TestStopBeatsPauseBeatsComments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		arrived []Signal
		want    Signal
	}{
		{nil, ""},
		{[]Signal{SignalComments}, SignalComments},
		{[]Signal{SignalComments, SignalPause}, SignalPause},
		{[]Signal{SignalComments, SignalPause, SignalStop}, SignalStop},
		{[]Signal{SignalPause, SignalStop}, SignalStop},
	} {
		if got := FirstSignal(c.arrived...); got != c.want {
			t.Errorf("of %v, %q is acted on", c.arrived, got)
		}
	}
}

func TestLoginsIgnoreCase(t *testing.T) {
	t.Parallel()
	if !(Comment{Author: "Toryo-Bot"}).By("toryo-bot") {
		t.Error("case matters")
	}
	if (Comment{}).By("") {
		t.Error("a deleted author is taken for the bot")
	}
}

func TestLeaseIsHeldUntilItExpires(t *testing.T) {
	t.Parallel()
	now := time.Now()
	lease := Lease{Agent: "a", ExpiresAt: now}
	if lease.Held(now) || !lease.Held(now.Add(-time.Second)) || (Lease{}).Held(now) {
		t.Error("a lease is held up to, not at, its end, and only by someone")
	}
}

func TestCodesAreDistinct(t *testing.T) {
	t.Parallel()
	exits := map[int]Code{0: "success"}
	for _, info := range Codes {
		if other, taken := exits[info.Exit]; taken {
			t.Errorf("%s and %s share exit code %d", info.Code, other, info.Exit)
		}
		exits[info.Exit] = info.Code
		if info.Status < 400 || info.Status > 599 || info.Meaning == "" {
			t.Errorf("%s has status %d and meaning %q", info.Code, info.Status, info.Meaning)
		}
		if info.Code.Info() != info {
			t.Errorf("%s is in the table twice", info.Code)
		}
	}
	if Code("new").Info().Code != Internal {
		t.Error("an unknown code is not internal")
	}
}

func TestCodeIsFoundThroughWrapping(t *testing.T) {
	t.Parallel()
	cause := errors.New("refused")
	err := fmt.Errorf("start: %w", Wrap(DatabaseDown, cause, "cannot reach the database").WithHint("start it"))
	if CodeOf(err) != DatabaseDown || !errors.Is(err, cause) {
		t.Errorf("code %s of %v", CodeOf(err), err)
	}
	if err.Error() != "start: cannot reach the database: refused; start it" {
		t.Errorf("reads %q", err)
	}
	if CodeOf(nil) != "" || CodeOf(cause) != Internal {
		t.Error("nil has no code; an error without one is internal")
	}
}

// What was written is found in an occasion, also after the pull request was closed and opened
// again. The ID of a review is not that of a comment.
func TestCommentOf(t *testing.T) {
	t.Parallel()
	const at = "2026-11-16T09:30:00Z "
	for occasion, want := range map[string]struct {
		id      string
		written bool
	}{
		at + "comment 5": {"5", true},
		at + "comment 5 reopened 2026-11-16T10:00:00.5Z": {"5", true},
		at + "body 5": {"", true},
		at + "body 5 reopened 2026-11-16T10:00:00.5Z": {"", true},
		at + "review 5": {},
		at + "review 5 reopened 2026-11-16T10:00:00.5Z":  {},
		at + "comment 5 assigned 2026-11-16T10:00:00.5Z": {},
		at + "comment 5 base b1 head c1 round 1":         {},
		"":                                               {},
	} {
		if id, written := CommentOf(occasion); id != want.id || written != want.written {
			t.Errorf("%q: %q, %v", occasion, id, written)
		}
	}
}
