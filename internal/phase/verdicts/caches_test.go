package verdicts_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/sandbox"
)

// What a model's commands write into the cache of a compiler is in their own sandbox only:
// the verdict on the work does not see it, nor does the next run on the repository. And none
// of the sandboxes compiles Go's standard library, neither with another plan, nor when what
// was kept is older than the five days after which Go removes what it has compiled.
func TestCachesAreWarmAndCannotBePoisoned(t *testing.T) {
	t.Parallel()
	engine := &ageing{Engine: phasetest.Engine(t)}
	for _, name := range []string{"poisoned", "honest", "honest"} {
		scenario, err := phasetest.Load("testdata/caches/" + name + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		world := phasetest.New(t, engine, scenario)
		world.Adjust = withSnapshots
		if _, err := world.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		world.Check()
		engine.check(t, name)
	}
}

// withSnapshots has environments kept, and each sandbox use its own cache.
func withSnapshots(options *phase.Options) {
	options.Setup.Snapshots = 1 << 30
	delete(options.Spec.Env, "GOCACHE")
	delete(options.Spec.Env, "GODEBUG")
}

// ageing is an engine whose snapshots are always six days old for Go, and that counts what
// its sandboxes add to Go's cache.
type ageing struct {
	sandbox.Engine

	mu    sync.Mutex
	added []int // by each sandbox that was started from a snapshot
}

const (
	sixDaysGo = `cd ~/.cache/go-build && find . -type f ! -newermt 2036-01-01 -exec touch -d '6 days ago' {} + && date -d '6 days ago' +%s >trim.txt`
	addedTo   = `find ~/.cache/go-build -type f -name '*-a' -newermt '1 day ago' ! -newermt 2036-01-01 | wc -l`
	// ownEntries is how many a project of one package adds; the standard library has hundreds.
	ownEntries = 60
)

func (a *ageing) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	box, err := a.Engine.Start(ctx, spec)
	if err != nil || spec.Snapshot == "" {
		return box, err
	}
	if _, err := box.Run(ctx, sandbox.Command{Text: sixDaysGo, Fresh: true}); err != nil {
		return nil, err
	}
	return &agedBox{Sandbox: box, of: a}, nil
}

type agedBox struct {
	sandbox.Sandbox

	of   *ageing
	once sync.Once
}

func (b *agedBox) Stop(ctx context.Context) error {
	b.once.Do(func() {
		added := -1
		if ran, err := b.Run(ctx, sandbox.Command{Text: addedTo, Fresh: true}); err == nil {
			if number, err := strconv.Atoi(strings.TrimSpace(string(ran.Stdout))); err == nil {
				added = number
			}
		}
		b.of.mu.Lock()
		defer b.of.mu.Unlock()
		b.of.added = append(b.of.added, added)
	})
	return b.Sandbox.Stop(ctx)
}

func (a *ageing) check(t *testing.T, run string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	most := 0
	for _, added := range a.added {
		if most = max(most, added); added < 0 || added > ownEntries {
			t.Errorf("%s: the sandboxes added %v entries to Go's cache", run, a.added)
			break
		}
	}
	if len(a.added) < 3 || most == 0 {
		t.Errorf("%s: the sandboxes from snapshots added %v entries", run, a.added)
	}
	a.added = nil
}
