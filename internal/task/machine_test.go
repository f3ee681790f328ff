package task

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// assigned makes a task that has just been assigned.
func assigned(t interface{ Fatal(...any) }) Task {
	subject := Task{ID: "one"}
	if _, err := subject.Apply(Assigned, ReasonAssigned); err != nil {
		t.Fatal(err)
	}
	return subject
}

// The rules that every row of the table has to keep.
func TestMovesKeepTheRules(t *testing.T) {
	t.Parallel()
	seen := map[[2]string]bool{}
	for _, move := range Moves {
		row := [2]string{string(move.From), string(move.Trigger)}
		if seen[row] {
			t.Errorf("%v: two moves for one state and trigger", row)
		}
		seen[row] = true
		if !move.To.Valid() || move.To == move.From {
			t.Errorf("%v: leads to %q", row, move.To)
		}
		if move.Label != move.To.Label() {
			t.Errorf("%v: shows %s, but %s is shown as %s", row, move.Label, move.To, move.To.Label())
		}
		if (move.To == Queued || move.To == Stopped) && !move.NextGeneration {
			t.Errorf("%v: a move to %s must begin a new generation", row, move.To)
		}
		if move.From.Terminal() && !move.NextGeneration {
			t.Errorf("%v: leaves a terminal state within its generation", row)
		}
		if move.Why == "" {
			t.Errorf("%v: says not when it happens", row)
		}
	}
}

func TestEveryStateCanBeReachedAndHasItsOwnLabel(t *testing.T) {
	t.Parallel()
	reached := map[State]bool{}
	labels := map[Label]State{}
	for _, move := range Moves {
		reached[move.To] = true
	}
	for _, state := range States {
		if !reached[state] {
			t.Errorf("no move leads to %s", state)
		}
		if other, taken := labels[state.Label()]; taken || state.Label() == "" {
			t.Errorf("%s and %s share the label %q", state, other, state.Label())
		}
		labels[state.Label()] = state
	}
}

func TestEveryTriggerIsUsed(t *testing.T) {
	t.Parallel()
	for _, trigger := range Triggers {
		used := slices.ContainsFunc(Moves, func(m Move) bool { return m.Trigger == trigger })
		if !used {
			t.Errorf("no move is made by %s", trigger)
		}
	}
}

func TestIllegalMoveIsTypedAndChangesNothing(t *testing.T) {
	t.Parallel()
	subject := assigned(t)
	before := subject
	_, err := subject.Apply(Finished, ReasonCompleted)
	var illegal *IllegalMoveError
	if !errors.As(err, &illegal) || illegal.From != Queued || illegal.Trigger != Finished {
		t.Fatalf("got %v, want an IllegalMoveError from queued by finished", err)
	}
	if CodeOf(err) != IllegalMove {
		t.Errorf("code is %s", CodeOf(err))
	}
	if subject != before {
		t.Errorf("the task changed: %+v", subject)
	}
}

// What cannot be done is said in a whole sentence, from every state.
func TestIllegalMovesAreSentences(t *testing.T) {
	t.Parallel()
	for _, from := range append([]State{none}, States...) {
		for _, trigger := range Triggers {
			_, err := FindMove(from, trigger)
			if err == nil {
				continue
			}
			text, _ := IllegalMoveText(err)
			before, after, is := strings.Cut(text, " cannot ")
			if from == none {
				before, after, is = strings.Cut(text, " that could ")
			}
			whole := is && after != "" && (from == none && before == "there is no task" || strings.HasPrefix(before, "the task ") && strings.HasSuffix(before, " and"))
			if !whole || text == "" {
				t.Errorf("%q by %s is said as %q", from, trigger, text)
			}
		}
	}
}

// forgeItem stands for the item on a forge: it has labels, and every move puts
// them right the way that the server does.
type forgeItem struct{ labels []string }

func (f *forgeItem) show(names LabelNames, state State) {
	add, remove := names.Change(f.labels, state)
	f.labels = slices.DeleteFunc(f.labels, func(label string) bool { return slices.Contains(remove, label) })
	f.labels = append(f.labels, add...)
}

func (f *forgeItem) stateLabels(names LabelNames) []string {
	var found []string
	for _, label := range f.labels {
		if names.isStateLabel(label) {
			found = append(found, label)
		}
	}
	return found
}

// Whatever happens to a task in whatever order: it never leaves a terminal state
// within its generation, a generation is claimed once at most, the forge never
// shows two state labels, and only what is done is reported as done.
func TestRandomLives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		names := DefaultLabelNames()
		item := forgeItem{labels: rapid.SliceOfDistinct(rapid.SampledFrom([]string{"bug", "BACKENDCODER", "coding agent", "coding agent done"}), rapid.ID).Draw(r, "labels")}
		others := slices.DeleteFunc(slices.Clone(item.labels), names.isStateLabel)
		claimed := map[int64]bool{}
		subject := assigned(r)
		item.show(names, subject.State)
		for _, trigger := range rapid.SliceOfN(rapid.SampledFrom(Triggers), 0, 60).Draw(r, "triggers") {
			before := subject
			move, err := subject.Apply(trigger, ReasonAssigned)
			if err != nil {
				if subject != before {
					r.Fatalf("an illegal move changed the task from %+v to %+v", before, subject)
				}
				continue
			}
			item.show(names, subject.State)
			if before.State.Terminal() && subject.Generation == before.Generation {
				r.Fatalf("%s left %s within generation %d", trigger, before.State, before.Generation)
			}
			if subject.Generation < before.Generation {
				r.Fatalf("the generation went back from %d to %d", before.Generation, subject.Generation)
			}
			if subject.State == Running {
				if claimed[subject.Generation] {
					r.Fatalf("generation %d was handed out twice", subject.Generation)
				}
				claimed[subject.Generation] = true
			}
			if shown := item.stateLabels(names); len(shown) != 1 || shown[0] != names[move.Label] {
				r.Fatalf("a task that is %s shows %q", subject.State, shown)
			}
			if subject.State != Done && (subject.State.Succeeded() || slices.Contains(item.labels, names[DoneLabel])) {
				r.Fatalf("a task that is %s is reported as done", subject.State)
			}
		}
		for _, label := range others {
			if !slices.Contains(item.labels, label) {
				r.Fatalf("the label %q, which is not ours, is gone", label)
			}
		}
	})
}

func TestAttemptsCountClaimsSinceAssignment(t *testing.T) {
	t.Parallel()
	subject := assigned(t)
	for _, trigger := range []Trigger{Claimed, Lost, Claimed, Returned, Claimed} {
		if _, err := subject.Apply(trigger, ""); err != nil {
			t.Fatal(err)
		}
	}
	if subject.Attempts != 2 {
		t.Errorf("attempts are %d after three claims, one of which was handed back", subject.Attempts)
	}
	for _, trigger := range []Trigger{PauseSet, Resumed} {
		if _, err := subject.Apply(trigger, ""); err != nil {
			t.Fatal(err)
		}
	}
	if subject.Attempts != 0 {
		t.Errorf("attempts are %d after a person resumed the task", subject.Attempts)
	}
	for _, trigger := range []Trigger{Withdrawn, Assigned} {
		if _, err := subject.Apply(trigger, ""); err != nil {
			t.Fatal(err)
		}
	}
	if subject.Attempts != 0 {
		t.Errorf("attempts are %d after a new assignment", subject.Attempts)
	}
}
