package mirror_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
)

// servers are two with a folder each, one database and one forge.
type servers struct {
	one, two *site
	store    store.Store
	task     task.Task
	keep     *keeper
}

// keeper is the database, which can fail.
type keeper struct {
	store.Store
	down  atomic.Bool
	asked atomic.Pointer[func()] // is called before the newest refs are read; nil for nothing
}

func (k *keeper) NewestRefs(ctx context.Context, id task.ID) (store.KeptRefs, error) {
	if asked := k.asked.Load(); asked != nil {
		(*asked)()
	}
	return k.Store.NewestRefs(ctx, id)
}

func (k *keeper) KeepRefs(ctx context.Context, refs store.KeptRefs, after int64) (int64, error) {
	if k.down.Load() {
		return 0, task.Errorf(task.DatabaseDown, "the database is down")
	}
	return k.Store.KeepRefs(ctx, refs, after)
}

func newServers(t *testing.T, change func(*mirror.Options)) *servers {
	t.Helper()
	database, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "toryo.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = database.Close() })
	s := &servers{store: database, keep: &keeper{Store: database}}
	options := func(o *mirror.Options) {
		o.Keep = s.keep
		if change != nil {
			change(o)
		}
	}
	s.one = newSite(t, options)
	s.two = &site{origin: s.one.origin, leases: s.one.leases, root: t.TempDir()}
	s.two.open(t, options)
	key := task.Key{Forge: repository.Forge, Repository: repository.Name, Kind: task.Issue, Number: 1}
	if s.task, _, err = database.Assign(t.Context(), store.NewTask{Key: key, Type: task.Development, Role: "R", Reason: task.ReasonAssigned}, nil); err != nil {
		t.Fatal(err)
	}
	s.claim(t)
	return s
}

// claim hands the task out, and a token with it.
func (s *servers) claim(t *testing.T) {
	t.Helper()
	held, err := s.store.Claim(t.Context(), []store.Claim{{
		Task: s.task.ID, Generation: s.task.Generation, Agent: "agent", TokenHash: []byte("t"), ExpiresAt: time.Now().Add(time.Hour),
	}}, nil)
	if err != nil || len(held) != 1 {
		t.Fatalf("claimed %d tasks: %v", len(held), err)
	}
	s.task = held[0]
	s.one.leases.give("token", mirror.Holder{Task: s.task.ID, Generation: s.task.Generation, Repository: repository})
}

func (s *servers) seed(t *testing.T, at *site, branches ...string) {
	t.Helper()
	if err := at.Fetch(t.Context(), repository, 0); err != nil {
		t.Fatal(err)
	}
	err := at.Seed(t.Context(), mirror.Seed{
		Repository: repository, Task: s.task.ID, Generation: s.task.Generation, Base: "main", Branches: branches,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *servers) address(at *site) string { return at.address(s.task.ID, "token") }

// refs is what an agent sees through a server.
func (s *servers) refs(t *testing.T, at *site) string {
	t.Helper()
	return run(t, "", "ls-remote", s.address(at))
}

// A branch whose name has a space that is not ASCII is there through every server too.
func TestAnotherServerHasBranchesWithWideSpaces(t *testing.T) {
	t.Parallel()
	s := newServers(t, nil)
	s.seed(t, s.one)
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.address(s.one), work)
	tip := commit(t, work, "b.txt")
	const branch = "refs/heads/\u6a5f\u80fd\u3000\u8ffd\u52a0"
	run(t, work, "push", "--quiet", s.address(s.one), "HEAD:"+branch)
	if one, two := s.refs(t, s.one), s.refs(t, s.two); one != two || !strings.Contains(one, tip+"\t"+branch) {
		t.Errorf("one server has\n%s\nand the other\n%s", one, two)
	}
}

// A mirror that a task begins to use at this moment is not removed.
func TestMirrorThatIsInUseStays(t *testing.T) {
	t.Parallel()
	s := newServers(t, nil)
	asked := 0
	forget := func() {
		asked++
		if gone, err := s.one.Forget(t.Context(), repository, time.Now().Add(time.Hour)); err != nil || gone {
			t.Errorf("while the task is prepared, gone is %v, %v", gone, err)
		}
	}
	s.keep.asked.Store(&forget)
	s.seed(t, s.one)
	s.keep.asked.Store(nil)
	if asked == 0 {
		t.Error("nothing was tried, so this test shows nothing")
	}
	if got := s.refs(t, s.one); !strings.Contains(got, "refs/heads/main") {
		t.Errorf("the task has %s", got)
	}
}

// What a task has pushed through one server is there through another that has
// nothing in common with it but the database, also when the first is gone.
func TestAnotherServerHasWhatWasPushed(t *testing.T) {
	t.Parallel()
	s := newServers(t, nil)
	s.seed(t, s.one)
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.address(s.two), work) // which has never seen the repository
	run(t, work, "checkout", "--quiet", "-b", "toryo/1")
	first := commit(t, work, "b.txt")
	run(t, work, "push", "--quiet", s.address(s.one), "HEAD:refs/toryo/wip")
	tip := commit(t, work, "c.txt")
	run(t, work, "push", "--quiet", s.address(s.two), "HEAD:refs/heads/toryo/1")
	if one, two := s.refs(t, s.one), s.refs(t, s.two); one != two || !strings.Contains(one, first+"\trefs/toryo/wip") || !strings.Contains(one, tip+"\trefs/heads/toryo/1") {
		t.Fatalf("one server has\n%s\nand the other\n%s", one, two)
	}

	// The first is gone, with all that it had.
	s.one.Stop()
	if err := os.RemoveAll(s.one.root); err != nil {
		t.Fatal(err)
	}
	again := t.TempDir()
	run(t, "", "clone", "--quiet", s.address(s.two), again)
	run(t, again, "fetch", "--quiet", "origin", "refs/toryo/wip")
	if got := run(t, again, "rev-parse", "FETCH_HEAD"); got != first {
		t.Errorf("the work in progress is %s, want %s", got, first)
	}
	publication := mirror.Publication{Item: s.task.Key, Task: s.task.ID, Generation: s.task.Generation, Branch: "toryo/1", Commit: tip}
	must(t, s.two.publishing(t, publication))

	// A third knows what was published, and may replace it.
	three := &site{origin: s.one.origin, leases: s.one.leases, root: t.TempDir()}
	three.open(t, func(o *mirror.Options) { o.Keep = s.keep })
	run(t, work, "reset", "--quiet", "--hard", "HEAD~1")
	publication.Commit = commit(t, work, "d.txt")
	run(t, work, "push", "--quiet", "--force", s.address(three), "HEAD:refs/heads/toryo/1")
	made, err := three.Publish(t.Context(), publication)
	must(t, err)
	if got := run(t, s.one.origin.path(repository.Name), "rev-parse", "toryo/1"); got != made {
		t.Errorf("the forge has %s, want %s", got, made)
	}
}

// The work of a task that was stopped can be fetched by its commit when the task was assigned again and has
// other work in progress: through every server, also when what no ref names is gone, by old versions of git,
// and whatever its agent pushes.
func TestWorkOfAnEarlierAssignmentStays(t *testing.T) {
	t.Parallel()
	s := newServers(t, nil)
	s.seed(t, s.one)
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.address(s.one), work)
	promised := commit(t, work, "b.txt")
	run(t, work, "push", "--quiet", "origin", "HEAD:"+task.WIPRef)

	var err error
	if s.task, err = s.store.Move(t.Context(), store.Change{Task: s.task.ID, Generation: s.task.Generation, Trigger: task.Withdrawn, Reason: task.ReasonUnassigned}); err != nil {
		t.Fatal(err)
	}
	if s.task, _, err = s.store.Assign(t.Context(), store.NewTask{Key: s.task.Key, Type: task.Development, Role: "R", Reason: task.ReasonAssigned}, nil); err != nil {
		t.Fatal(err)
	}
	s.claim(t)
	must(t, s.two.Fetch(t.Context(), repository, 0))
	must(t, s.two.Seed(t.Context(), mirror.Seed{Repository: repository, Task: s.task.ID, Generation: s.task.Generation, Base: "main", Anew: true}))
	for _, at := range []*site{s.one, s.two} {
		if refs := s.refs(t, at); strings.Contains(refs, promised+"\t"+task.WIPRef) {
			t.Errorf("a run of the new assignment would go on with the work of the earlier one:\n%s", refs)
		}
	}
	run(t, work, "reset", "--quiet", "--hard", "origin/main")
	newer := commit(t, work, "c.txt")
	run(t, work, "push", "--quiet", "--force", s.address(s.two), "HEAD:"+task.WIPRef)
	if output, err := try(t, work, "push", "--quiet", "--force", s.address(s.two), "HEAD:"+task.KeptRefs+promised); err == nil {
		t.Errorf("an agent has moved what people were promised: %s", output)
	}
	for _, at := range []*site{s.one, s.two} {
		if refs := s.refs(t, at); !strings.Contains(refs, newer+"\t"+task.WIPRef) {
			t.Errorf("the work in progress is not the newer one:\n%s", refs)
		}
		run(t, at.dir(), "gc", "--quiet", "--prune=now")
		for _, protocol := range []string{"0", "2"} {
			fresh := t.TempDir()
			run(t, "", "init", "--quiet", fresh)
			run(t, fresh, "-c", "protocol.version="+protocol, "fetch", "--quiet", s.address(at), promised)
			if got := run(t, fresh, "rev-parse", "FETCH_HEAD"); got != promised {
				t.Errorf("fetched was %s, and %s was promised", got, promised)
			}
		}
	}
}

// The base that an agent is given anew when it fetches is the same through every
// server.
func TestBaseMovesOnEveryServer(t *testing.T) {
	t.Parallel()
	now := func(o *mirror.Options) { o.BaseAge = func(task.Repository) time.Duration { return 0 } }
	s := newServers(t, now)
	s.seed(t, s.one)
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.one.origin.path(repository.Name), work)
	for i, at := range []*site{s.one, s.two, s.two, s.one} {
		tip := commit(t, work, "main.txt")
		run(t, work, "push", "--quiet", "origin", "HEAD:main")
		if refs := s.refs(t, at); !strings.Contains(refs, tip+"\trefs/heads/main") {
			t.Fatalf("after push %d the agent is given\n%s\nwant %s", i, refs, tip)
		}
		if one, two := s.refs(t, s.one), s.refs(t, s.two); one != two {
			t.Fatalf("one server has\n%s\nand the other\n%s", one, two)
		}
	}
}

// Each request may go to another server than the one before, as through a load
// balancer.
func TestRequestsGoToAnyServer(t *testing.T) {
	t.Parallel()
	s := newServers(t, nil)
	s.seed(t, s.one)
	var requests atomic.Int64
	balancer := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		target, _ := url.Parse([]string{s.one.url, s.two.url}[requests.Add(1)%2])
		r.SetURL(target)
	}})
	t.Cleanup(balancer.Close)
	address := (&site{url: balancer.URL}).address(s.task.ID, "token")
	work := t.TempDir()
	run(t, "", "clone", "--quiet", "--depth=1", address, work)
	run(t, work, "checkout", "--quiet", "-b", "toryo/1")
	for i := range 6 {
		tip := commit(t, work, "b.txt")
		run(t, work, "push", "--quiet", "--force", "origin", "HEAD:refs/toryo/wip", "HEAD:refs/heads/toryo/1")
		if i%2 == 1 { // work in progress is made anew, not added to
			run(t, work, "reset", "--quiet", "--hard", "HEAD~1")
			_, _ = try(t, "", "ls-remote", address) // so that the next push begins at the other
		}
		if one, two := s.refs(t, s.one), s.refs(t, s.two); one != two || strings.Count(one, tip) != 2 {
			t.Fatalf("after push %d of %s one server has\n%s\nand the other\n%s", i, tip, one, two)
		}
	}
	run(t, work, "push", "--quiet", "origin", ":refs/heads/toryo/1")
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/toryo/1/a")
	if one, two := s.refs(t, s.one), s.refs(t, s.two); one != two || !strings.Contains(one, "refs/heads/toryo/1/a") {
		t.Errorf("one server has\n%s\nand the other\n%s", one, two)
	}
}

// A run that was lost goes on through another server, and the first one refuses
// what the lost run still pushes.
func TestRunGoesOnThroughAnotherServer(t *testing.T) {
	t.Parallel()
	s := newServers(t, nil)
	s.seed(t, s.one)
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.address(s.one), work)
	tip := commit(t, work, "b.txt")
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/toryo/1")
	commit(t, work, "c.txt")

	// The lease runs out just when git is about to move the refs: whoever asks for
	// leases was told before that all is well.
	old := s.address(s.one)
	moved, err := s.store.Move(t.Context(), store.Change{Task: s.task.ID, Trigger: task.Lost, Reason: task.ReasonLeaseExpired})
	if err != nil {
		t.Fatal(err)
	}
	if said, err := try(t, work, "push", "--quiet", old, "HEAD:refs/heads/toryo/1"); err == nil || !strings.Contains(said, "the run is over") {
		t.Errorf("the push of a lost run: %v\n%s", err, said)
	}
	s.task = moved
	s.claim(t)
	s.seed(t, s.two, "toryo/1")
	for _, at := range []*site{s.two, s.one} {
		if refs := s.refs(t, at); !strings.Contains(refs, tip+"\trefs/heads/toryo/1") {
			t.Errorf("the next run sees\n%s", refs)
		}
	}
}

// A server that dies after it has kept a push, and before git has moved the refs,
// has it when it is back.
func TestKeptAndNotMoved(t *testing.T) {
	t.Parallel()
	s := newServers(t, nil)
	s.seed(t, s.one)
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.address(s.one), work)
	tip := commit(t, work, "b.txt")
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/toryo/wip")
	run(t, s.one.dir(), "update-ref", "-d", "refs/namespaces/"+string(s.task.ID)+"/refs/toryo/wip")
	run(t, s.one.dir(), "reflog", "expire", "--all", "--expire=now")
	run(t, s.one.dir(), "gc", "--quiet", "--prune=now")
	s.one.Stop()
	s.one.open(t, func(o *mirror.Options) { o.Keep = s.keep })
	if refs := s.refs(t, s.one); !strings.Contains(refs, tip+"\trefs/toryo/wip") {
		t.Errorf("after the restart there is\n%s", refs)
	}
}

// The commit that a task stands on may be gone from all branches of the forge.
func TestBaseThatNoBranchHas(t *testing.T) {
	t.Parallel()
	s := newServers(t, nil)
	s.seed(t, s.one)
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.address(s.one), work)
	commit(t, work, "b.txt")
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/toryo/1")
	origin := s.one.origin.path(repository.Name)
	run(t, origin, "config", "uploadpack.allowAnySHA1InWant", "true")
	run(t, origin, "update-ref", "refs/heads/main", run(t, origin, "rev-parse", "main~1"))
	again := t.TempDir()
	run(t, "", "clone", "--quiet", "--branch=toryo/1", s.address(s.two), again)
	if got := run(t, again, "rev-list", "--count", "HEAD"); got != "4" {
		t.Errorf("there are %s commits, want 4", got)
	}
}

// What cannot be kept is not accepted, and git says why.
func TestPushThatCannotBeKept(t *testing.T) {
	t.Parallel()
	s := newServers(t, func(o *mirror.Options) { o.MaxKept = 10 << 10 })
	s.seed(t, s.one)
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.address(s.one), work)
	before := s.refs(t, s.one)
	commit(t, work, "b.txt")
	s.keep.down.Store(true)
	if said, err := try(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/toryo/1"); err == nil || !strings.Contains(said, "the server has trouble of its own") {
		t.Errorf("while the database is down: %v\n%s", err, said)
	}
	s.keep.down.Store(false)
	if got := s.refs(t, s.one); got != before {
		t.Errorf("a push that was refused has moved refs:\n%s", got)
	}
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/toryo/1")
	noise := make([]byte, 64<<10)
	_, _ = rand.Read(noise) // which does not fail
	if err := os.WriteFile(filepath.Join(work, "large"), noise, 0o600); err != nil {
		t.Fatal(err)
	}
	commit(t, work, "b.txt")
	if said, err := try(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/toryo/1"); err == nil || !strings.Contains(said, "larger than what is kept") {
		t.Errorf("a push that is too large: %v\n%s", err, said)
	}
}

// A database that does not answer is not the end of a run.
func TestDatabaseThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.begin(t, "task1")
	failing := httptest.NewServer(http.StripPrefix("/git", s.Handler(func(context.Context, task.ID, string) (mirror.Holder, error) {
		return mirror.Holder{}, task.Errorf(task.DatabaseDown, "the database is down")
	})))
	t.Cleanup(failing.Close)
	said, err := try(t, "", "ls-remote", (&site{url: failing.URL}).address("task1", "token-task1"))
	if err == nil || !strings.Contains(said, "503") {
		t.Errorf("git says %v\n%s", err, said)
	}
}

// What a task was seeded with is fetched whole by a server that has it in part.
func TestBaseThatIsHereInPart(t *testing.T) {
	t.Parallel()
	s := newServers(t, nil)
	must(t, s.two.Fetch(t.Context(), repository, 0))
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.one.origin.path(repository.Name), work)
	commit(t, work, "b.txt")
	base := commit(t, work, "c.txt")
	run(t, work, "push", "--quiet", "origin", "HEAD:main", "HEAD:refs/keep/it")
	s.seed(t, s.one)
	run(t, work, "push", "--quiet", "--force", "origin", "HEAD~2:main")
	s.two.part(t, work, base)
	if refs, err := s.two.Refs(t.Context(), repository, s.task.ID); err != nil || len(refs) != 0 {
		t.Fatalf("the other server has %v, %v", refs, err)
	}
	must(t, s.two.Seed(t.Context(), mirror.Seed{Repository: repository, Task: s.task.ID, Generation: s.task.Generation, Base: "main"}))
	s.two.wantWhole(t)
	run(t, s.two.dir(), "rev-list", "--objects", base)
}

// A ref with the name of the folder for what people were promised would leave no room for that.
func TestRefInPlaceOfTheFolderForWhatIsKept(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	work := s.branch(t)
	commit(t, work, "b.txt")
	if output, err := try(t, work, "push", "--quiet", "origin", "HEAD:"+strings.TrimSuffix(task.KeptRefs, "/")); err == nil {
		t.Errorf("it was pushed: %s", output)
	}
	run(t, work, "push", "--quiet", "origin", "HEAD:"+task.WIPRef)
	must(t, s.Seed(t.Context(), mirror.Seed{Repository: repository, Task: "task1", Generation: 1, Base: "main", Anew: true}))
}
