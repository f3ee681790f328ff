package mirror_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/task"
)

// cruft lists the packs that are set aside.
func (s *site) cruft(t testing.TB) []string {
	t.Helper()
	kept, err := filepath.Glob(filepath.Join(s.dir(), "objects", "pack", "*.keep"))
	must(t, err)
	return kept
}

// agePacks makes the packs that are set aside look as if that was so many days ago.
func (s *site) agePacks(t testing.TB, days int) {
	t.Helper()
	then := time.Now().AddDate(0, 0, -days)
	for _, keep := range s.cruft(t) {
		must(t, os.Chtimes(keep, then, then))
	}
}

// maintain is Maintain when there is nothing to pack.
func (s *site) maintain(t testing.TB) {
	t.Helper()
	if packed, err := s.Maintain(t.Context(), repository); err != nil || packed {
		t.Errorf("packed: %v, %v", packed, err)
	}
}

func (s *site) wantWhole(t testing.TB) {
	t.Helper()
	if got, err := try(t, s.dir(), "-c", "core.commitGraph=false", "fsck", "--connectivity-only"); err != nil || strings.Contains(got, "missing") || strings.Contains(got, "broken") {
		t.Errorf("the mirror is broken: %s, %v", got, err)
	}
}

// dropped is a mirror with work of two tasks, of which that of the first was dropped and set aside.
func dropped(t *testing.T) (s *site, one, two string) {
	t.Helper()
	s = newSite(t, nil)
	s.begin(t, "task1")
	s.begin(t, "task2")
	one, two = s.save(t, "task1", 3), s.save(t, "task2", 3)
	if dropped, err := s.Drop(t.Context(), repository, "task1", always); err != nil || !dropped {
		t.Fatalf("dropped: %v, %v", dropped, err)
	}
	if packed, err := s.Maintain(t.Context(), repository); err != nil || !packed {
		t.Fatalf("packed: %v, %v", packed, err)
	}
	if len(s.cruft(t)) != 1 || !s.hasCommit(t, one) {
		t.Fatalf("set aside are %v", s.cruft(t))
	}
	return s, one, two
}

// What nothing leads to goes two weeks after it was found, and what people were promised can be fetched.
func TestObjectsThatNothingLeadsToGo(t *testing.T) {
	t.Parallel()
	s, one, two := dropped(t)
	s.agePacks(t, 13)
	s.maintain(t)
	if !s.hasCommit(t, one) {
		t.Error("it is gone before its time")
	}

	// What was dropped later is not taken along.
	s.begin(t, "task3")
	three := s.save(t, "task3", 2)
	_, err := s.Drop(t.Context(), repository, "task3", always)
	must(t, err)
	s.repack(t)
	before, _ := onDisk(t, s.dir())
	s.agePacks(t, 15)
	s.maintain(t)
	after, _ := onDisk(t, s.dir())
	if s.hasCommit(t, one) || !s.hasCommit(t, three) || after >= before {
		t.Errorf("it is still there: %v; what was dropped later: %v; %d bytes became %d", s.hasCommit(t, one), s.hasCommit(t, three), before, after)
	}
	s.wantWhole(t)
	s.wantFetched(t, map[task.ID]string{"task2": two})
	if len(s.cruft(t)) != 1 {
		t.Errorf("set aside are %v", s.cruft(t))
	}
	s.agePacks(t, 15)
	s.maintain(t)
	if s.hasCommit(t, three) || len(s.cruft(t)) != 0 {
		t.Errorf("what was dropped later stays; set aside are %v", s.cruft(t))
	}
	s.wantWhole(t)
	s.begin(t, "task1") // begins again
	s.wantFetched(t, map[task.ID]string{"task2": two, "task1": s.save(t, "task1", 1)})
}

// A push at that moment survives, and what it brings back stays.
func TestPushWhileObjectsGo(t *testing.T) {
	t.Parallel()
	s, one, two := dropped(t)
	work := t.TempDir()
	run(t, "", "init", "--quiet", work)
	run(t, work, "fetch", "--quiet", s.dir(), one)
	s.begin(t, "task1")
	s.agePacks(t, 15)
	during := 0
	s.leases.watch(func(asked int, _ map[string]mirror.Holder) {
		if asked == 3 { // git has the objects, and asks whether it may move the refs
			during++
			s.maintain(t)
			if len(s.cruft(t)) != 1 || !s.hasCommit(t, one) {
				t.Error("objects went while something was pushed")
			}
		}
	})
	run(t, work, "push", "--quiet", s.address("task1", "token-task1"), one+":"+task.WIPRef)
	s.leases.watch(nil)
	if during != 1 {
		t.Fatalf("the push was seen %d times", during)
	}
	for range 2 { // the objects are needed again, and are packed with the others
		s.agePacks(t, 15)
		_, err := s.Maintain(t.Context(), repository)
		must(t, err)
		s.wantWhole(t)
		s.wantFetched(t, map[task.ID]string{"task1": one, "task2": two})
		long := time.Now().AddDate(0, 0, -30)
		must(t, os.Chtimes(filepath.Join(s.dir(), "toryo-packed"), long, long))
	}
}

// A server that was killed while it looked whether objects can go has lost nothing.
func TestKilledWhileObjectsGo(t *testing.T) {
	t.Parallel()
	s, one, two := dropped(t)
	away := filepath.Join(s.dir(), "toryo-cruft")
	must(t, os.Mkdir(away, 0o700))
	name := strings.TrimSuffix(filepath.Base(s.cruft(t)[0]), "keep")
	files, err := filepath.Glob(filepath.Join(s.dir(), "objects", "pack", name+"*"))
	must(t, err)
	for _, file := range files[:len(files)/2+1] {
		must(t, os.Rename(file, filepath.Join(away, filepath.Base(file))))
	}
	s.open(t, nil)
	s.begin(t, "task3")
	if !s.hasCommit(t, one) {
		t.Error("it is gone")
	}
	s.wantFetched(t, map[task.ID]string{"task2": two})
	s.agePacks(t, 15)
	s.maintain(t)
	if s.hasCommit(t, one) {
		t.Error("it is still there")
	}
	if _, err := os.Stat(away); err == nil {
		t.Error("something is left of it")
	}
	s.wantWhole(t)
}

// part puts the commit itself into the mirror, and nothing that it leads to.
func (s *site) part(t testing.TB, work, commit string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "commit")
	must(t, os.WriteFile(file, []byte(run(t, work, "cat-file", "commit", commit)+"\n"), 0o600))
	if got := run(t, s.dir(), "hash-object", "-w", "-t", "commit", file); got != commit {
		t.Fatalf("the mirror has got %s, want %s", got, commit)
	}
}

// A commit that is here in part, since a pack with the rest has gone, is fetched whole before a task gets it.
func TestCommitThatIsHereInPart(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.begin(t, "task1")
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.origin.path(repository.Name), work)
	commit(t, work, "b.txt")
	tip := commit(t, work, "c.txt")
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/keep/it")
	s.part(t, work, tip)
	must(t, s.Seed(t.Context(), mirror.Seed{
		Repository: repository, Task: "task1", Generation: 1, Base: "main", Branches: []string{"gone"}, Commits: map[string]string{"refs/heads/gone": tip},
	}))
	s.wantWhole(t)
	again := t.TempDir()
	run(t, "", "clone", "--quiet", "--branch=gone", s.address("task1", "token-task1"), again)
	if got := run(t, again, "rev-parse", "HEAD"); got != tip {
		t.Errorf("the task has %s, want %s", got, tip)
	}
}

// The same, with the packs of which one goes: the commit of a branch that is gone is packed later than its
// parent, and stays longer.
func TestPackGoesAndLeavesACommitInPart(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.begin(t, "task1")
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.origin.path(repository.Name), work)
	drop := func() string {
		tip := commit(t, work, "b.txt")
		run(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/gone", "HEAD:refs/keep/it")
		s.begin(t, "task2")
		run(t, work, "push", "--quiet", "origin", ":refs/heads/gone")
		s.begin(t, "task2")
		_, err := s.Drop(t.Context(), repository, "task2", always)
		must(t, err)
		return tip
	}
	parent := drop()
	_, err := s.Maintain(t.Context(), repository)
	must(t, err)
	tip := drop()
	for object := range strings.FieldsSeq(run(t, work, "rev-list", "--objects", "--no-object-names", parent+".."+tip)) {
		if !s.hasCommit(t, object) {
			t.Fatalf("the mirror does not have %s", object)
		}
	}
	s.repack(t)
	s.agePacks(t, 15)
	s.maintain(t)
	if s.hasCommit(t, parent) || !s.hasCommit(t, tip) {
		t.Fatalf("the mirror has the parent: %v; and the commit: %v", s.hasCommit(t, parent), s.hasCommit(t, tip))
	}
	must(t, s.Seed(t.Context(), mirror.Seed{
		Repository: repository, Task: "task1", Generation: 1, Base: "main", Branches: []string{"gone"}, Commits: map[string]string{"refs/heads/gone": tip},
	}))
	s.wantWhole(t)
	run(t, "", "clone", "--quiet", "--branch=gone", s.address("task1", "token-task1"), t.TempDir())
}

// expiring is a context whose deadline passes when the test says so.
type expiring struct {
	context.Context //nolint:containedctx // it is one

	done chan struct{}
}

func (e *expiring) Done() <-chan struct{} { return e.done }

func (e *expiring) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// A check that takes too long holds up nobody who uses another repository, and is not made again at once.
func TestCheckTakesTooLong(t *testing.T) {
	t.Parallel()
	s, one, two := dropped(t)
	s.open(t, func(o *mirror.Options) { o.MaxServed = 1 })
	s.begin(t, "task4")
	other := task.Repository{Forge: repository.Forge, Name: "owner/other"}
	s.origin.add(t, other.Name, 1)
	must(t, s.Fetch(t.Context(), other, 0))
	must(t, s.Seed(t.Context(), mirror.Seed{Repository: other, Task: "task5", Generation: 1, Base: "main"}))
	s.leases.give("token-task5", mirror.Holder{Task: "task5", Generation: 1, Repository: other})
	s.agePacks(t, 15)

	// Git reads a pipe into which nothing is written.
	pipe := filepath.Join(s.dir(), "objects", "info", "alternates")
	must(t, syscall.Mkfifo(pipe, 0o600))
	ctx := &expiring{t.Context(), make(chan struct{})}
	var checked, fetched sync.WaitGroup
	var failed error
	checked.Go(func() { _, failed = s.Maintain(ctx, repository) })
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns when git has opened it
	must(t, err)
	asked := make(chan struct{})
	s.leases.watch(func(int, map[string]mirror.Holder) { asked <- struct{}{} })
	fetched.Go(func() {
		if output, err := try(t, "", "ls-remote", s.address("task4", "token-task4")); err != nil {
			t.Errorf("after the check: %v: %s", err, output)
		}
	})
	<-asked
	s.leases.watch(nil)
	run(t, "", "ls-remote", s.address("task5", "token-task5"))
	if _, err := os.Stat(filepath.Join(s.dir(), "toryo-cruft")); err != nil {
		t.Errorf("another repository had to wait for the check: %v", err)
	}
	must(t, os.Remove(pipe))
	close(ctx.done)
	checked.Wait()
	fetched.Wait()
	must(t, writer.Close())
	wantCode(t, failed, task.Internal)

	kept := s.cruft(t)
	if len(kept) != 1 || !s.hasCommit(t, one) {
		t.Fatalf("set aside are %v", kept)
	}
	if info, err := os.Stat(kept[0]); err != nil || time.Since(info.ModTime()) > 24*time.Hour {
		t.Errorf("the check is made again at once: %v, %v", info, err)
	}
	s.wantWhole(t)
	s.wantFetched(t, map[task.ID]string{"task2": two})
}
