package web

import (
	"iter"
	"maps"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// timeOf lets templates name the type without an import of their own.
type timeOf = time.Time

// pressed is the state of a button that stays down.
func pressed(is bool) string {
	if is {
		return "true"
	}
	return "false"
}

// eventSubject is what a happening on an item was about, in words where it is one
// of our own.
func eventSubject(v visit, event store.BoardEvent) string {
	if event.Kind == store.BoardStateSet {
		return v.t("item." + event.Subject)
	}
	return event.Subject
}

// buttonKind marks the button that cannot be taken back.
func buttonKind(name string) string {
	if name == "stop" {
		return "danger"
	}
	return ""
}

// limitOf is a limit, or the word for none.
func limitOf(v visit, text string, limit int64) string {
	if limit == 0 {
		return v.t("settings.no_limit")
	}
	return text
}

// short is a commit as people name it.
func short(commit string) string { return textfmt.ShortCommit(commit) }

func keysOf(fields map[string]any) iter.Seq[string] { return maps.Keys(fields) }

// threadName tells the conversations about a review apart.
func threadName(v visit, index int, thread store.Thread) string {
	if thread.Owner == "" {
		return v.t("chat.on_forge")
	}
	return v.t("chat.thread", index+1)
}

// contextTitle says whether a page shows what a model would be sent now, or what it
// was sent then.
func contextTitle(v visit, then bool) string {
	if then {
		return v.t("chat.sent")
	}
	return v.t("chat.context")
}

// needed reports whether Toryo does not work without a right.
func needed(right forge.Right) bool {
	for _, one := range forge.NeededRights {
		if one.Right == right {
			return one.Required
		}
	}
	return false
}

// rightBadge is the colour of the state of a right.
func rightBadge(check forge.RightCheck) string {
	switch {
	case check.State == forge.RightGiven:
		return "ok"
	case check.State == forge.RightMissing && needed(check.Right):
		return "bad"
	default:
		return "wait"
	}
}

// stepBadge is the colour of what became of a step.
func stepBadge(state string) string {
	if state == "left_out" {
		return "wait"
	}
	return "ok"
}
