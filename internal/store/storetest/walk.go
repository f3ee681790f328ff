package storetest

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// walk leads tasks through random triggers, in the store and in the state machine
// alone, and compares them at every step.
func walk(t *testing.T, s store.Store) {
	rapid.Check(t, func(r *rapid.T) {
		w := &walker{t: t, r: r, s: s, want: newTaskOn(newKey())}
		r.Repeat(map[string]func(*rapid.T){
			"assign": w.assign,
			"claim":  w.claim,
			"move":   w.move,
			"":       w.compare,
		})
	})
}

type walker struct {
	t     *testing.T
	r     *rapid.T
	s     store.Store
	want  store.NewTask
	model task.Task // what the machine alone says
	moves int
}

// apply makes the move on the model and checks what holds for every move.
func (w *walker) apply(trigger task.Trigger, reason task.Reason) error {
	before := w.model
	_, err := w.model.Apply(trigger, reason)
	if err != nil {
		return err
	}
	w.moves++
	if w.model.Generation < before.Generation {
		w.r.Fatalf("%s led from generation %d back to %d", trigger, before.Generation, w.model.Generation)
	}
	if before.State.Terminal() && w.model.Generation == before.Generation {
		w.r.Fatalf("%s led out of %s within generation %d", trigger, before.State, before.Generation)
	}
	return nil
}

func (w *walker) assign(*rapid.T) {
	active := w.model.State.Active()
	stored, queued, err := w.s.Assign(w.t.Context(), w.want, nil)
	if err != nil {
		w.r.Fatal(err)
	}
	if queued == active {
		w.r.Fatalf("a task that is %q: queued is %v", w.model.State, queued)
	}
	if active {
		return
	}
	if err := w.apply(task.Assigned, w.want.Reason); err != nil {
		w.r.Fatal(err)
	}
	w.model.ID = stored.ID
}

func (w *walker) claim(*rapid.T) {
	if w.model.ID == "" {
		w.r.Skip("there is no task yet")
	}
	generation := w.model.Generation - int64(rapid.IntRange(0, 1).Draw(w.r, "older"))
	claim := store.Claim{Task: w.model.ID, Generation: generation, Agent: "agent", TokenHash: tokenHash, ExpiresAt: noon}
	held, err := w.s.Claim(w.t.Context(), []store.Claim{claim}, nil)
	if err != nil {
		w.r.Fatal(err)
	}
	possible := w.model.State == task.Queued && generation == w.model.Generation
	if possible != (len(held) == 1) {
		w.r.Fatalf("a task that is %s in generation %d, claimed in %d: %d held", w.model.State, w.model.Generation, generation, len(held))
	}
	if possible {
		w.model.Lease = task.Lease{Agent: "agent", ExpiresAt: noon}
		if err := w.apply(task.Claimed, task.ReasonClaimed); err != nil {
			w.r.Fatal(err)
		}
	}
}

func (w *walker) move(*rapid.T) {
	if w.model.ID == "" {
		w.r.Skip("there is no task yet")
	}
	trigger := rapid.SampledFrom(task.Triggers).Draw(w.r, "trigger")
	generation := rapid.SampledFrom([]int64{0, w.model.Generation, w.model.Generation - 1}).Draw(w.r, "generation")
	before := w.model
	_, err := w.s.Move(w.t.Context(), store.Change{Task: w.model.ID, Generation: generation, Trigger: trigger, Reason: task.ReasonRetried})
	switch {
	case trigger == task.Claimed:
		w.wantCode(err, task.Invalid)
	case generation != 0 && generation != before.Generation:
		w.wantCode(err, task.StaleGeneration)
	case w.apply(trigger, task.ReasonRetried) != nil:
		w.wantCode(err, task.IllegalMove)
	default:
		w.wantCode(err, "")
	}
}

func (w *walker) wantCode(err error, code task.Code) {
	if task.CodeOf(err) != code {
		w.r.Fatalf("a task that is %s: error %v, want the code %q", w.model.State, err, code)
	}
}

// compare looks at the stored task after every step.
func (w *walker) compare(*rapid.T) {
	if w.model.ID == "" {
		return
	}
	stored, err := w.s.Task(w.t.Context(), w.model.ID)
	if err != nil {
		w.r.Fatal(err)
	}
	if stored.State != w.model.State || stored.Generation != w.model.Generation || stored.Attempts != w.model.Attempts ||
		stored.Reason != w.model.Reason || stored.Lease != w.model.Lease || stored.Phase != w.model.Phase {
		w.r.Fatalf("stored is\n%+v\nthe machine says\n%+v", stored, w.model)
	}
	last, err := w.s.EventsAfter(w.t.Context(), w.model.ID, int64(w.moves-1), 0)
	if err != nil {
		w.r.Fatal(err)
	}
	if len(last) != 1 || last[0].Generation != w.model.Generation {
		w.r.Fatalf("after %d moves, in generation %d, the last events are %+v", w.moves, w.model.Generation, last)
	}
}
