package mirror_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/task"
)

// onDisk is what a folder takes: every file in whole blocks.
func onDisk(t testing.TB, dir string) (bytes int64, files int) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		const block = 4096
		bytes += (info.Size() + block - 1) / block * block
		files++
		return err
	}))
	return bytes, files
}

// save pushes some commits as an agent saves its work, and returns the last one.
func (s *site) save(t testing.TB, id task.ID, commits int) string {
	t.Helper()
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.address(id, "token-"+string(id)), work)
	last := ""
	for i := range commits {
		last = commit(t, work, fmt.Sprintf("%s-%d.txt", id, i))
		run(t, work, "push", "--quiet", "--force", "origin", "HEAD:"+task.WIPRef)
	}
	return last
}

// loosen makes the mirror look as one that has seen many small pushes: git and we count the
// loose objects whose hashes begin with 17.
func (s *site) loosen() error {
	for made := 0; made < 9; {
		text := fmt.Sprint(loosened.Add(1))
		object := fmt.Sprintf("blob %d\x00%s", len(text), text)
		sum := sha1.Sum([]byte(object))
		name := hex.EncodeToString(sum[:])
		if name[:2] != "17" {
			continue
		}
		made++
		var packed bytes.Buffer
		writer := zlib.NewWriter(&packed)
		_, err := writer.Write([]byte(object))
		folder := filepath.Join(s.dir(), "objects", "17")
		err = errors.Join(err, writer.Close(), os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, name[2:]), packed.Bytes(), 0o400))
		if err != nil {
			return err
		}
	}
	return nil
}

var loosened atomic.Int64

func always(context.Context) (bool, error) { return true, nil }
func never(context.Context) (bool, error)  { return false, nil }

// A mirror that is packed takes less space on the disk, and everything that tasks have can
// still be fetched, by the name and the commit that a comment promises. What nothing leads to
// stays: a task may be seeded with it at any moment.
func TestPackedMirrorShrinks(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.begin(t, "task1")
	s.begin(t, "task2")
	one, two := s.save(t, "task1", 12), s.save(t, "task2", 12)
	must(t, s.loosen())
	must(t, os.WriteFile(filepath.Join(s.dir(), "objects", "pack", "tmp_pack_broken"), []byte("PACK"), 0o600))
	before, files := onDisk(t, s.dir())
	if packed, err := s.Maintain(t.Context(), repository); err != nil || !packed {
		t.Fatalf("packed: %v, %v", packed, err)
	}
	after, filesAfter := onDisk(t, s.dir())
	if after >= before*2/3 || filesAfter >= files/2 {
		t.Errorf("%d bytes in %d files became %d in %d", before, files, after, filesAfter)
	}
	t.Logf("%d bytes in %d files became %d in %d", before, files, after, filesAfter)
	if _, err := os.Stat(filepath.Join(s.dir(), "objects", "pack", "tmp_pack_broken")); err == nil {
		t.Error("the unfinished pack is still there")
	}
	s.wantFetched(t, map[task.ID]string{"task1": one, "task2": two})
	if packed, err := s.Maintain(t.Context(), repository); err != nil || packed {
		t.Errorf("there is nothing to gain, and it is packed again: %v, %v", packed, err)
	}

	// The work of one task is dropped. Nothing leads to it, and it stays.
	if dropped, err := s.Drop(t.Context(), repository, "task1", never); err != nil || dropped {
		t.Fatalf("a task that is not over is dropped: %v, %v", dropped, err)
	}
	s.wantFetched(t, map[task.ID]string{"task1": one})
	if dropped, err := s.Drop(t.Context(), repository, "task1", always); err != nil || !dropped {
		t.Fatalf("dropped: %v, %v", dropped, err)
	}
	ids, err := s.Tasks(t.Context(), repository)
	must(t, err)
	if fmt.Sprint(ids) != "[task2]" {
		t.Errorf("the mirror has something of %v", ids)
	}
	s.age(t)
	s.repack(t)
	if !s.hasCommit(t, one) {
		t.Error("what a task may still be seeded with is gone at once")
	}
	s.wantFetched(t, map[task.ID]string{"task2": two})
	if packed, err := s.Maintain(t.Context(), repository); err != nil || packed {
		t.Errorf("what was dropped is packed, and it is packed again: %v, %v", packed, err)
	}
	if got := run(t, s.dir(), "fsck", "--connectivity-only"); strings.Contains(got, "missing") || strings.Contains(got, "broken") {
		t.Errorf("the mirror is broken: %s", got)
	}
	s.begin(t, "task1") // begins again
}

// A mirror that has been fetched and pushed to often has few packs and few files of refs again,
// and everything that it had, also what nothing leads to. That is packed by itself later.
func TestCompactedMirror(t *testing.T) {
	t.Parallel()
	var free atomic.Int64
	free.Store(1 << 40)
	s := newSite(t, func(o *mirror.Options) { o.Free = func(string) (int64, error) { return free.Load(), nil } })
	s.begin(t, "task1")
	one := s.save(t, "task1", 3)
	lost := s.save(t, "task1", 1)
	run(t, s.dir(), "update-ref", "refs/namespaces/task1/"+task.WIPRef, one)
	compact := func(when string, want bool) {
		t.Helper()
		if compacted, err := s.Compact(t.Context(), repository); err != nil || compacted != want {
			t.Errorf("%s: %v, %v", when, compacted, err)
		}
	}
	compact("there is nothing to gain", false)
	work, push := s.person(t)
	for n := range 25 {
		run(t, work, "checkout", "--quiet", "-B", "feature", "origin/main")
		push("feature", "some.txt", fmt.Sprint(n, "\n"))
		must(t, s.Fetch(t.Context(), repository, 0))
	}
	packs := func() int {
		found, err := filepath.Glob(filepath.Join(s.dir(), "objects", "pack", "*.pack"))
		must(t, err)
		return len(found)
	}
	objects := func() string { return run(t, s.dir(), "cat-file", "--batch-all-objects", "--batch-check") }
	had, before := objects(), packs()
	free.Store(1 << 20)
	compact("the disk has no room", false)
	free.Store(1 << 40)
	compact("there are many packs", true)
	if after := packs(); before <= 20 || after > 5 {
		t.Errorf("%d packs became %d", before, after)
	}
	compact("it was compacted", false)
	tip := run(t, s.dir(), "rev-parse", "refs/heads/main")
	for n := range 250 {
		run(t, s.dir(), "update-ref", fmt.Sprintf("refs/seeded/many%d/%s", n, tip), tip)
	}
	refs := run(t, s.dir(), "for-each-ref")
	compact("there are many refs", true)
	if left, err := os.ReadDir(filepath.Join(s.dir(), "refs", "seeded")); err == nil && len(left) > 0 {
		t.Errorf("%d tasks have refs in files of their own", len(left))
	}
	if objects() != had || run(t, s.dir(), "for-each-ref") != refs {
		t.Error("something else has changed")
	}
	s.wantFetched(t, map[task.ID]string{"task1": one})
	must(t, os.WriteFile(filepath.Join(s.dir(), "toryo-packed"), nil, 0o600))
	s.repack(t)
	if cruft, err := filepath.Glob(filepath.Join(s.dir(), "objects", "pack", "*.mtimes")); err != nil || len(cruft) != 1 || !s.hasCommit(t, lost) {
		t.Errorf("what nothing leads to is not in a pack of its own: %v, %v", cruft, err)
	}
}

// A mirror that cannot be compacted is left alone for a while, and nothing unfinished stays in it.
func TestCompactingFails(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.begin(t, "task1")
	folder := filepath.Join(s.dir(), "objects", "pack")
	for n := range 25 { // no packs that git could read
		must(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("pack-%040d.pack", n)), []byte("PACK"), 0o600))
		must(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("pack-%040d.idx", n)), []byte("none"), 0o600))
	}
	must(t, os.WriteFile(filepath.Join(s.dir(), "HEAD"), []byte("damaged"), 0o600))
	must(t, os.WriteFile(filepath.Join(folder, "tmp_pack_broken"), []byte("PACK"), 0o600))
	if compacted, err := s.Compact(t.Context(), repository); err == nil || compacted {
		t.Fatalf("compacted: %v, %v", compacted, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "tmp_pack_broken")); err == nil {
		t.Error("the unfinished pack is still there")
	}
	if compacted, err := s.Compact(t.Context(), repository); err != nil || compacted {
		t.Errorf("it is tried again at once: %v, %v", compacted, err)
	}
}

// repack packs the mirror as if that was last done long ago.
func (s *site) repack(t testing.TB) {
	t.Helper()
	long := time.Now().AddDate(0, 0, -30)
	must(t, os.Chtimes(filepath.Join(s.dir(), "toryo-packed"), long, long))
	if packed, err := s.Maintain(t.Context(), repository); err != nil || !packed {
		t.Fatalf("packed: %v, %v", packed, err)
	}
}

// age makes all objects of the mirror look old.
func (s *site) age(t testing.TB) {
	t.Helper()
	long := time.Now().AddDate(-1, 0, 0)
	must(t, filepath.WalkDir(filepath.Join(s.dir(), "objects"), func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, long, long))
	}))
}

func (s *site) hasCommit(t testing.TB, commit string) bool {
	t.Helper()
	_, err := try(t, s.dir(), "cat-file", "-e", commit)
	return err == nil
}

// wantFetched fetches as the comment about a stopped task says, with a person's token.
func (s *site) wantFetched(t testing.TB, promised map[task.ID]string) {
	t.Helper()
	for id, commit := range promised {
		s.leases.give("person", mirror.Holder{Task: id, Repository: repository, ReadOnly: true})
		work := t.TempDir()
		run(t, "", "init", "--quiet", work)
		run(t, work, "fetch", "--quiet", s.address(id, "person"), task.WIPRef)
		if got := run(t, work, "rev-parse", "FETCH_HEAD"); got != commit {
			t.Errorf("%s has %s, and %s was promised", id, got, commit)
		}
	}
}

// Agents clone, push and are seeded while the mirror is packed, and a fetch that fails
// meanwhile breaks nothing.
func TestPackedWhileItIsUsed(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.begin(t, "task1")
	s.save(t, "task1", 8)
	done := make(chan error, 1)
	var times atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			packed, err := false, s.loosen()
			if err == nil {
				packed, err = s.Maintain(ctx, repository)
			}
			if packed {
				times.Add(1)
			}
			if err != nil && ctx.Err() == nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	wanted := map[task.ID]string{}
	for i := 0; i < 4 || times.Load() == 0 && i < 40; i++ {
		id := task.ID(fmt.Sprintf("other%d", i))
		s.begin(t, id)
		wanted[id] = s.save(t, id, 2)
		if err := s.Seed(t.Context(), mirror.Seed{Repository: repository, Task: "none", Base: "main", Refs: []string{"refs/pull/99/head"}}); err == nil {
			t.Error("a ref that is not there is fetched")
		}
	}
	stop()
	must(t, <-done)
	if times.Load() == 0 {
		t.Error("it was never packed")
	}
	s.wantFetched(t, wanted)
}

// A packing that was killed leaves nothing that stands in the way of the next.
func TestPackingIsKilled(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.begin(t, "task1")
	one := s.save(t, "task1", 5)
	must(t, s.loosen())
	for _, name := range []string{"objects/pack/.tmp-123-pack-aa.pack", "objects/pack/tmp_idx_1", "gc.pid.lock", "packed-refs.lock"} {
		must(t, os.WriteFile(filepath.Join(s.dir(), name), []byte("x"), 0o600))
	}
	must(t, os.Mkdir(filepath.Join(s.root, "gitea", "removing-1"), 0o700))
	ctx, cut := context.WithCancel(t.Context())
	cut()
	if _, err := s.Maintain(ctx, repository); err == nil {
		t.Error("it goes on after its end")
	}
	s.open(t, nil)
	host, err := os.Hostname()
	must(t, err)
	// Another process has got the number of the one that was killed.
	must(t, os.WriteFile(filepath.Join(s.dir(), "gc.pid"), fmt.Appendf(nil, "%d %s", os.Getpid(), host), 0o600))
	if packed, err := s.Maintain(t.Context(), repository); err != nil || !packed {
		t.Fatalf("packed: %v, %v", packed, err)
	}
	left, err := filepath.Glob(filepath.Join(s.dir(), "objects", "pack", "*tmp*"))
	must(t, err)
	if _, err := os.Stat(filepath.Join(s.root, "gitea", "removing-1")); err == nil || len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	s.wantFetched(t, map[task.ID]string{"task1": one})
}

// The mirror of a repository that nobody works on goes, and is made again when somebody does.
func TestUnusedMirrorGoes(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.begin(t, "task1")
	later := time.Now().Add(time.Hour)
	for _, step := range []struct {
		before time.Time
		gone   bool
		what   string
	}{{later, false, "a task has something in it"}, {time.Now().Add(-time.Hour), false, "it was fetched"}, {later, true, "nobody uses it"}} {
		gone, err := s.Forget(t.Context(), repository, step.before)
		if err != nil || gone != step.gone {
			t.Fatalf("%s: gone is %v, %v", step.what, gone, err)
		}
		if _, err := s.Drop(t.Context(), repository, "task1", always); err != nil && !step.gone {
			t.Fatal(err)
		}
	}
	must(t, os.RemoveAll(s.dir())) // Drop has made it again, empty
	s.open(t, nil)
	s.begin(t, "task1")
	s.save(t, "task1", 1)
	known, err := s.Repositories()
	must(t, err)
	if fmt.Sprint(known) != fmt.Sprint([]task.Repository{repository}) {
		t.Errorf("the mirrors are of %v", known)
	}
}

// A mirror that cannot be packed is left alone for a day, and is then tried again.
func TestPackingFails(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(t *testing.T, s *site) (repair func()){
		"no room": func(t *testing.T, s *site) func() {
			t.Helper()
			s.open(t, func(o *mirror.Options) { o.Free = func(string) (int64, error) { return 100 << 20, nil } })
			return func() { s.open(t, nil) }
		},
		"a broken ref": func(t *testing.T, s *site) func() {
			t.Helper()
			ref := filepath.Join(s.dir(), "refs", "heads", "broken")
			must(t, os.MkdirAll(filepath.Dir(ref), 0o700))
			must(t, os.WriteFile(ref, []byte(strings.Repeat("17", 20)+"\n"), 0o600))
			return func() { must(t, os.Remove(ref)) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil)
			s.begin(t, "task1")
			must(t, s.loosen())
			repair := fail(t, s)
			tried := filepath.Join(s.dir(), "toryo-tried")
			for range 2 {
				if packed, err := s.Maintain(t.Context(), repository); err == nil || packed {
					t.Fatalf("it is packed: %v, %v", packed, err)
				}
				if packed, err := s.Maintain(t.Context(), repository); err != nil || packed {
					t.Errorf("it is tried again at once: %v, %v", packed, err)
				}
				yesterday := time.Now().Add(-25 * time.Hour)
				must(t, os.Chtimes(tried, yesterday, yesterday))
			}
			repair()
			if packed, err := s.Maintain(t.Context(), repository); err != nil || !packed {
				t.Fatalf("packed: %v, %v", packed, err)
			}
			must(t, s.loosen())
			if packed, err := s.Maintain(t.Context(), repository); err != nil || !packed {
				t.Errorf("it is left alone after it was packed: %v, %v", packed, err)
			}
		})
	}
}

// waiting is a context that says when somebody begins to wait for its end.
type waiting struct {
	context.Context //nolint:containedctx // it is one
	once            *sync.Once
	begun           chan struct{}
}

func (w waiting) Done() <-chan struct{} {
	w.once.Do(func() { close(w.begun) })
	return w.Context.Done()
}

// A mirror that was being fetched while it was to be removed stays: it is used.
func TestFetchedMirrorStays(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	must(t, s.Fetch(t.Context(), repository, 0))
	long := time.Now().AddDate(0, 0, -100)
	must(t, os.Chtimes(filepath.Join(s.dir(), "toryo-used"), long, long))
	fetching, goOn := make(chan struct{}), make(chan struct{})
	s.open(t, func(o *mirror.Options) {
		o.Remote = func(ctx context.Context, r task.Repository) (forge.Remote, error) {
			close(fetching)
			<-goOn
			return s.origin.remote(ctx, r)
		}
	})
	fetched := make(chan error, 1)
	go func() { fetched <- s.Fetch(t.Context(), repository, 0) }()
	<-fetching
	type answer struct {
		gone bool
		err  error
	}
	forgotten, ctx := make(chan answer, 1), waiting{t.Context(), &sync.Once{}, make(chan struct{})}
	go func() {
		gone, err := s.Forget(ctx, repository, time.Now().AddDate(0, 0, -90))
		forgotten <- answer{gone, err}
	}()
	<-ctx.begun // it waits for the fetch
	close(goOn)
	must(t, <-fetched)
	if got := <-forgotten; got.err != nil || got.gone {
		t.Errorf("gone is %v, %v", got.gone, got.err)
	}
	if commit, err := s.Branch(t.Context(), repository, "main"); err != nil || commit == "" {
		t.Errorf("main is at %q, %v", commit, err)
	}
}
