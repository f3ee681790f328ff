package mirror_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/task"
)

func TestCloneAndPush(t *testing.T) {
	t.Parallel()
	for _, depth := range []string{"", "--depth=1"} {
		t.Run("clone "+depth, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil)
			address := s.begin(t, "task1")
			work := t.TempDir()
			args := []string{"clone", "--quiet", address, work}
			if depth != "" {
				args = append(args, depth)
			}
			run(t, "", args...)
			want := map[string]string{"": "3", "--depth=1": "1"}[depth]
			if got := run(t, work, "rev-list", "--count", "HEAD"); got != want {
				t.Errorf("%s commits, want %s", got, want)
			}
			if got := run(t, work, "symbolic-ref", "HEAD"); got != "refs/heads/main" {
				t.Errorf("HEAD is %s", got)
			}
			before := run(t, s.dir(), "rev-parse", "refs/heads/main")
			run(t, work, "checkout", "--quiet", "-b", "toryo/1")
			tip := commit(t, work, "b.txt")
			run(t, work, "push", "--quiet", "origin", "toryo/1", "HEAD:refs/toryo/checkpoint")
			run(t, work, "push", "--quiet", "--force", "origin", "HEAD:main")
			if got := run(t, s.dir(), "rev-parse", "refs/namespaces/task1/refs/heads/toryo/1"); got != tip {
				t.Errorf("the namespace has %s, want %s", got, tip)
			}
			if got := run(t, s.dir(), "rev-parse", "refs/heads/main"); got != before {
				t.Error("a push of an agent moved the mirror's own branch")
			}
			if got := run(t, s.origin.path(repository.Name), "for-each-ref", "--format=%(refname)"); got != "refs/heads/main" {
				t.Errorf("a push of an agent reached the forge: %s", got)
			}
			// Another agent goes on where this one stopped.
			s.leases.give("second", mirror.Holder{Task: "task1", Generation: 2, Repository: repository})
			again := t.TempDir()
			run(t, "", "clone", "--quiet", "--branch=toryo/1", s.address("task1", "second"), again)
			if got := run(t, again, "rev-parse", "HEAD"); got != tip {
				t.Errorf("the second agent sees %s, want %s", got, tip)
			}
		})
	}
}

func TestTasksDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	one, two := s.begin(t, "task1"), s.begin(t, "task2")
	work := t.TempDir()
	run(t, "", "clone", "--quiet", one, work)
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/secret")
	if got := run(t, "", "ls-remote", two); strings.Contains(got, "secret") || strings.Contains(got, "namespaces") {
		t.Errorf("the second task sees %s", got)
	}
	if output, err := try(t, "", "ls-remote", s.address("task2", "token-task1")); err == nil {
		t.Errorf("one task's token opens another's: %s", output)
	}
	if output, err := try(t, "", "ls-remote", s.address("task2", "wrong")); err == nil {
		t.Errorf("a wrong token opens it: %s", output)
	}
	if dropped, err := s.Drop(t.Context(), repository, "task1", always); err != nil || !dropped {
		t.Fatal(dropped, err)
	}
	if got := run(t, s.dir(), "for-each-ref", "--format=%(refname)"); strings.Contains(got, "task1") || !strings.Contains(got, "task2") {
		t.Errorf("after the drop: %s", got)
	}
}

func TestOnlyTheSmartProtocol(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.begin(t, "task1")
	client := &http.Client{Timeout: time.Minute}
	for path, want := range map[string]int{
		"/git/task1.git/HEAD":                                    404,
		"/git/task1.git/objects/info/packs":                      404,
		"/git/task1.git/config":                                  404,
		"/git/task1.git/info/refs":                               403,
		"/git/task1.git/info/refs?service=git-upload-archive":    403,
		"/git/task1.git/info/refs?service=git-upload-pack":       200,
		"/git/..%2F..%2Fx.git/info/refs?service=git-upload-pack": 403,
	} {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
		request.SetBasicAuth("agent", "token-task1")
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, answer.StatusCode, want)
		}
	}
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/git/task1.git/info/refs?service=git-upload-pack", nil)
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized || answer.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("without a token: status %d", answer.StatusCode)
	}
}

// A run that ends in the middle of its push moves no ref.
func TestPushOfARunThatIsOver(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	address := s.begin(t, "task1")
	work := t.TempDir()
	run(t, "", "clone", "--quiet", address, work)
	commit(t, work, "b.txt")

	// It is asked for the refs, for the push, and again before refs move.
	s.leases.watch(func(asked int, holders map[string]mirror.Holder) {
		if asked == 3 {
			delete(holders, "token-task1")
		}
	})
	output, err := try(t, work, "push", "origin", "HEAD:refs/heads/zombie")
	if err == nil || !strings.Contains(output, "the run is over") {
		t.Errorf("the push ended with %v: %s", err, output)
	}
	if asked := s.leases.questions(); asked != 3 {
		t.Errorf("the lease was asked for %d times, want 3", asked)
	}
	if output, err := try(t, work, "push", "origin", "HEAD:refs/heads/zombie"); err == nil {
		t.Errorf("a later push was taken: %s", output)
	}
	if output, err := try(t, work, "fetch", "origin"); err == nil {
		t.Errorf("a later fetch was served: %s", output)
	}
	// Likewise when the token is of another generation by then.
	s.leases.give("token-task1", mirror.Holder{Task: "task1", Generation: 1, Repository: repository})
	s.leases.watch(func(asked int, holders map[string]mirror.Holder) {
		if asked == 3 {
			holders["token-task1"] = mirror.Holder{Task: "task1", Generation: 2, Repository: repository}
		}
	})
	if output, err := try(t, work, "push", "origin", "HEAD:refs/heads/zombie"); err == nil {
		t.Errorf("a push of the generation before was taken: %s", output)
	}
	if got := run(t, s.dir(), "for-each-ref", "--format=%(refname)"); strings.Contains(got, "zombie") {
		t.Errorf("refs: %s", got)
	}
}

func TestRefsThatAgentsMayNotMove(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.begin(t, "task1"), work)
	for _, ref := range []string{"refs/replace/" + strings.Repeat("a", 40), "refs/published/task1/main", "refs/namespaces/task2/refs/heads/x"} {
		if output, err := try(t, work, "push", "origin", "HEAD:"+ref); err == nil {
			t.Errorf("a push to %s was taken: %s", ref, output)
		}
	}
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/tags/v1")
}

func TestFetchIsShared(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := s.Fetch(t.Context(), repository, time.Minute); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := s.origin.fetches.Load(); got != 1 || s.Fetches() != 1 {
		t.Errorf("20 tasks cost the forge %d fetches, want 1", got)
	}
	s.Changed(repository)
	for range 2 {
		if err := s.Fetch(t.Context(), repository, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.origin.fetches.Load(); got != 2 {
		t.Errorf("%d fetches after a push to the forge, want 2", got)
	}
}

func TestFetchFollowsTheForge(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	address := s.begin(t, "task1")
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.origin.path(repository.Name), work)
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/old", "HEAD:refs/tags/v1", "HEAD:refs/pull/12/head")
	must(t, s.Fetch(t.Context(), repository, 0))
	run(t, work, "commit", "--quiet", "--amend", "-m", "rewritten")
	tip := run(t, work, "rev-parse", "HEAD")
	run(t, work, "push", "--quiet", "--force", "origin", "HEAD:main", ":refs/heads/old")
	must(t, s.Fetch(t.Context(), repository, 0))
	got := run(t, s.dir(), "for-each-ref", "--format=%(refname)", "refs/heads", "refs/tags")
	if diff := cmp.Diff("refs/heads/main\nrefs/tags/v1", got); diff != "" {
		t.Error(diff)
	}
	if got := run(t, "", "ls-remote", address, "refs/heads/main"); !strings.HasPrefix(got, tip) {
		t.Error("an agent that fetches gets a base that is old")
	}
	must(t, s.Seed(t.Context(), mirror.Seed{Repository: repository, Task: "task1", Base: "main", Refs: []string{"refs/pull/12/head"}}))
	seen := run(t, "", "ls-remote", address)
	if !strings.Contains(seen, tip+"\trefs/heads/main") || !strings.Contains(seen, "refs/pull/12/head") {
		t.Errorf("after the task was seeded again it sees %s", seen)
	}
	for _, seed := range []mirror.Seed{
		{Repository: repository, Task: "task1", Base: "nowhere"},
		{Repository: repository, Task: "../x", Base: "main"},
		{Repository: repository, Task: "task1", Base: "a..b"},
		{Repository: repository, Task: "task1", Base: "main", Refs: []string{"--upload-pack=x"}},
	} {
		if err := s.Seed(t.Context(), seed); err == nil {
			t.Errorf("seeded %+v", seed)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// While git talks to the forge, no process shows the credential.
func TestCredentialIsOutOfSight(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	var looked atomic.Int64
	s.origin.watch = func(*http.Request) {
		processes, _ := filepath.Glob("/proc/[0-9]*")
		for _, process := range processes {
			for _, file := range []string{"cmdline", "environ"} {
				text, err := os.ReadFile(filepath.Join(process, file))
				if err == nil && bytes.Contains(text, []byte(password)) {
					t.Errorf("%s/%s shows the credential", process, file)
				}
			}
			looked.Add(1)
		}
	}
	s.begin(t, "task1")
	publish(t, s)
	if looked.Load() == 0 {
		t.Fatal("nothing was looked at")
	}
	err := filepath.WalkDir(s.root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(password)) {
			t.Errorf("%s has the credential in it", path)
		}
		return err
	})
	must(t, err)
}

// publish pushes a new commit as an agent and publishes it.
func publish(t testing.TB, s *site) (pushed, made string) {
	t.Helper()
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.address("task1", "token-task1"), work)
	run(t, work, "checkout", "--quiet", "-b", "toryo/1")
	tip := commit(t, work, "b.txt")
	run(t, work, "push", "--quiet", "--force", "origin", "toryo/1", "HEAD:refs/heads/other")
	made, err := s.Publish(t.Context(), publication("toryo/1", tip))
	must(t, err)
	return tip, made
}

// publishing publishes and returns what went wrong.
func (s *site) publishing(t testing.TB, p mirror.Publication) error {
	t.Helper()
	_, err := s.Publish(t.Context(), p)
	return err
}

func publication(branch, commit string) mirror.Publication {
	return mirror.Publication{
		Item: task.Key{Forge: repository.Forge, Repository: repository.Name, Kind: task.Issue, Number: 1},
		Task: "task1", Generation: 1, Branch: branch, Commit: commit,
	}
}

func TestPublish(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.begin(t, "task1")
	first, made := publish(t, s)
	must(t, s.publishing(t, publication("toryo/1", first))) // again changes nothing
	onForge := func() string {
		return run(t, s.origin.path(repository.Name), "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/toryo", "refs/heads/other")
	}
	if diff := cmp.Diff("refs/heads/toryo/1 "+made, onForge()); diff != "" {
		t.Errorf("exactly the task's branch is to be there:\n%s", diff)
	}
	// The task rewrites what it has published itself.
	_, made = publish(t, s)
	if diff := cmp.Diff("refs/heads/toryo/1 "+made, onForge()); diff != "" {
		t.Error(diff)
	}
	// A person pushes to the branch; the task does not have that commit.
	work := t.TempDir()
	run(t, "", "clone", "--quiet", "--branch=toryo/1", s.origin.path(repository.Name), work)
	theirs := commit(t, work, "c.txt")
	run(t, work, "push", "--quiet", "origin", "toryo/1")
	agent := t.TempDir()
	run(t, "", "clone", "--quiet", "--branch=toryo/1", s.address("task1", "token-task1"), agent)
	ours := commit(t, agent, "d.txt")
	run(t, agent, "push", "--quiet", "origin", "toryo/1")
	wantCode(t, s.publishing(t, publication("toryo/1", ours)), task.Conflict)
	if diff := cmp.Diff("refs/heads/toryo/1 "+theirs, onForge()); diff != "" {
		t.Errorf("a person's commit is gone:\n%s", diff)
	}
	wantCode(t, s.publishing(t, publication("toryo/1", first)), task.Conflict)
	wantCode(t, s.publishing(t, publication("missing", first)), task.NotFound)
	wantCode(t, s.publishing(t, publication("--force", first)), task.NotFound)
	wantCode(t, s.publishing(t, publication("a..b", first)), task.Invalid)
	run(t, agent, "push", "--quiet", "--force", "origin", "HEAD:main")
	wantCode(t, s.publishing(t, publication("main", ours)), task.Forbidden)
	// Whatever it pushes, what it started from stays what it was.
	if base, err := s.Base(t.Context(), repository, "task1"); err != nil || base != "main" {
		t.Errorf("the task started from %q, %v", base, err)
	}
}

func wantCode(t testing.TB, err error, code task.Code) {
	t.Helper()
	if got := task.CodeOf(err); got != code {
		t.Errorf("code %s, want %s: %v", got, code, err)
	}
}

func TestTroubleWithTheForge(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	dead := "http://127.0.0.1:1/x.git"
	s := newSite(t, func(o *mirror.Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	tests := []struct {
		name   string
		remote forge.Remote
		code   task.Code
	}{
		{"wrong password", forge.Remote{URL: s.origin.URL + "/owner/name.git", Username: "bot", Password: "wrong-password"}, task.Unauthorized},
		{"no password", forge.Remote{URL: s.origin.URL + "/owner/name.git"}, task.Unauthorized},
		{"gone", forge.Remote{URL: s.origin.URL + "/owner/gone.git", Username: "bot", Password: password}, task.NotFound},
		{"moved", forge.Remote{URL: s.origin.URL + "/moved/name.git", Username: "bot", Password: password}, task.NotFound},
		{"nobody listens", forge.Remote{URL: dead, Username: "bot", Password: password}, task.Unavailable},
		{"not a protocol of forges", forge.Remote{URL: "ext::sh -c touch% /tmp/owned"}, task.Unsupported},
		{"ssh", forge.Remote{URL: "ssh://host/x.git"}, task.Unsupported},
		{"a credential in the address", forge.Remote{URL: "http://a:b@127.0.0.1:1/x.git"}, task.Invalid},
		{"a credential with a line break", forge.Remote{URL: dead, Username: "a", Password: "b\nc"}, task.Invalid},
		{"an option", forge.Remote{URL: "--upload-pack=touch /tmp/owned"}, task.Invalid},
	}
	for _, test := range tests {
		elsewhere := func(o *mirror.Options) {
			o.Remote = func(context.Context, task.Repository) (forge.Remote, error) { return test.remote, nil }
		}
		other := &site{origin: s.origin, leases: s.leases, root: t.TempDir()}
		other.open(t, elsewhere)
		err := other.Fetch(t.Context(), repository, 0)
		if got := task.CodeOf(err); got != test.code {
			t.Errorf("%s: code %s, want %s: %v", test.name, got, test.code, err)
		}
		if test.remote.Password != "" && err != nil && strings.Contains(err.Error(), test.remote.Password) {
			t.Errorf("%s: the error shows the password: %v", test.name, err)
		}
	}
	// The mirror that is there survives a forge that is not.
	address := s.begin(t, "task1")
	s.origin.Close()
	if err := s.Fetch(t.Context(), repository, 0); task.CodeOf(err) != task.Unavailable {
		t.Errorf("a forge that is gone: %v", err)
	}
	run(t, "", "clone", "--quiet", address, t.TempDir())
}

func TestFetchEndsWithStop(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	reached, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.origin.watch = func(r *http.Request) {
		once.Do(func() { close(reached) })
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}
	t.Cleanup(func() { close(release) })
	result := make(chan error, 1)
	go func() { result <- s.Fetch(context.WithoutCancel(t.Context()), repository, 0) }()
	<-reached
	s.Stop()
	if err := <-result; err == nil {
		t.Error("a fetch that hangs ended well")
	}
	if err := s.Fetch(t.Context(), repository, 0); task.CodeOf(err) != task.Interrupted {
		t.Errorf("after the stop: %v", err)
	}
}

// What a killed process left does not stand in the way of the next.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.begin(t, "task1")
	for _, name := range []string{"packed-refs.lock", "HEAD.lock", "refs/heads/main.lock", "objects/pack/tmp_pack_x", "objects/pack/pack-1.keep", "objects/pack/pack-2.keep", "objects/pack/pack-2.mtimes"} {
		must(t, os.WriteFile(filepath.Join(s.dir(), name), nil, 0o600))
	}
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.origin.path(repository.Name), work)
	commit(t, work, "x.txt")
	run(t, work, "push", "--quiet", "origin", "main")
	if err := s.Fetch(t.Context(), repository, 0); err == nil {
		t.Fatal("the locks have no effect, so this test shows nothing")
	}
	s.open(t, nil)
	must(t, s.Fetch(t.Context(), repository, 0))
	// The file of a fetch that was killed would keep its pack for ever. One of ours sets a pack aside.
	kept, err := filepath.Glob(filepath.Join(s.dir(), "objects", "pack", "*.keep"))
	must(t, err)
	if len(kept) != 1 || filepath.Base(kept[0]) != "pack-2.keep" {
		t.Errorf("what keeps packs: %v", kept)
	}
	_, err = s.Maintain(t.Context(), repository)
	must(t, err)
}

// evil makes a commit whose tree has an entry that writes into the repository of
// whoever checks it out.
func evil(t testing.TB, dir string) string {
	t.Helper()
	blob := run(t, dir, "hash-object", "-w", "--stdin", "--path=x")
	inner := mktree(t, dir, "100755 blob "+blob+"\tpost-checkout\n")
	tree := mktree(t, dir, "040000 tree "+inner+"\t.git\n")
	return run(t, dir, "commit-tree", "-m", "evil", tree)
}

func mktree(t testing.TB, dir, entries string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tree")
	// git mktree refuses such names, so the object is written as it is.
	var raw []byte
	for line := range strings.Lines(entries) {
		meta, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		fields := strings.Fields(meta)
		raw = append(raw, strings.TrimPrefix(fields[0], "0")+" "+name+"\x00"...)
		for i := 0; i < len(fields[2]); i += 2 {
			value, err := strconv.ParseUint(fields[2][i:i+2], 16, 8)
			must(t, err)
			raw = append(raw, byte(value))
		}
	}
	must(t, os.WriteFile(path, raw, 0o600))
	return run(t, dir, "hash-object", "-w", "-t", "tree", "--literally", path)
}

func TestHostileObjects(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	address := s.begin(t, "task1")
	work := t.TempDir()
	run(t, "", "clone", "--quiet", address, work)
	if output, err := try(t, work, "push", "origin", evil(t, work)+":refs/heads/evil"); err == nil || !strings.Contains(output, "hasDotgit") {
		t.Errorf("the push ended with %v: %s", err, output)
	}
	upstream := s.origin.path(repository.Name)
	run(t, upstream, "update-ref", "refs/heads/evil", evil(t, upstream))
	before := run(t, s.dir(), "for-each-ref")
	wantCode(t, s.Fetch(t.Context(), repository, 0), task.Invalid)
	if diff := cmp.Diff(before, run(t, s.dir(), "for-each-ref")); diff != "" {
		t.Errorf("a refused fetch moved refs:\n%s", diff)
	}
}

// Hooks, alternates and configuration of the repository that is fetched have no
// effect here.
func TestHostileRepository(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	upstream, proof := s.origin.path(repository.Name), filepath.Join(t.TempDir(), "proof")
	for _, hook := range []string{"post-update", "pre-receive", "reference-transaction", "post-checkout"} {
		for _, dir := range []string{filepath.Join(upstream, "hooks"), filepath.Join(s.dir(), "hooks")} {
			must(t, os.MkdirAll(dir, 0o700))
			must(t, os.WriteFile(filepath.Join(dir, hook), []byte("#!/bin/sh\ntouch "+proof+"."+filepath.Base(filepath.Dir(dir))+"\n"), 0o700))
		}
	}
	must(t, os.RemoveAll(s.dir()))
	address := s.begin(t, "task1")
	must(t, os.MkdirAll(filepath.Join(s.dir(), "hooks"), 0o700))
	must(t, os.WriteFile(filepath.Join(s.dir(), "hooks", "post-update"), []byte("#!/bin/sh\ntouch "+proof+"\n"), 0o700))
	work := t.TempDir()
	run(t, "", "clone", "--quiet", address, work)
	commit(t, work, "x")
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/x")
	if _, err := os.Stat(proof); !errors.Is(err, os.ErrNotExist) {
		t.Error("a hook in the mirror was run")
	}
	if _, err := os.Stat(filepath.Join(s.dir(), "objects", "info", "alternates")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the mirror has alternates")
	}
}

// noise is a file that does not shrink when it is packed.
func noise(t testing.TB, work string, size int) {
	t.Helper()
	file := filepath.Join(work, "noise")
	data := make([]byte, size)
	state := uint64(88172645463325252)
	for i := range data {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		data[i] = byte(state)
	}
	must(t, os.WriteFile(file, data, 0o600))
	run(t, work, "add", "-A")
	run(t, work, "commit", "--quiet", "-m", "noise")
}

func TestLimits(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *mirror.Options) { o.MaxFetch, o.MaxPush = 1<<20, 1<<20 })
	address := s.begin(t, "task1")
	work := t.TempDir()
	run(t, "", "clone", "--quiet", address, work)
	noise(t, work, 3<<20)
	if output, err := try(t, work, "push", "origin", "HEAD:refs/heads/large"); err == nil {
		t.Errorf("a push of 3 MB was taken: %s", output)
	}
	run(t, work, "push", "--quiet", s.origin.path(repository.Name), "HEAD:refs/heads/large")
	err := s.Fetch(t.Context(), repository, 0)
	wantCode(t, err, task.TooLarge)
	if _, said := errors.AsType[*forge.Error](err); said {
		t.Errorf("a limit of ours is said to be the forge's: %v", err)
	}
	left, _ := filepath.Glob(filepath.Join(s.dir(), "objects", "pack", "tmp_*"))
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	run(t, "", "clone", "--quiet", address, t.TempDir())
}

func TestBoardIsAPathOnThisMachine(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	local := &site{origin: s.origin, leases: s.leases, root: t.TempDir()}
	local.open(t, func(o *mirror.Options) {
		o.Remote = func(context.Context, task.Repository) (forge.Remote, error) {
			return forge.Remote{URL: s.origin.path(repository.Name)}, nil
		}
	})
	local.begin(t, "task1")
	_, tip := publish(t, local)
	if got := run(t, s.origin.path(repository.Name), "rev-parse", "refs/heads/toryo/1"); got != tip {
		t.Errorf("published %s, want %s", got, tip)
	}
}

// A person fetches what a run that is over has saved, as the comment on the item
// says, and pushes nothing.
func TestPersonFetchesWhatWasKept(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	one := s.begin(t, "task1")
	work := t.TempDir()
	run(t, "", "clone", "--quiet", one, work)
	run(t, work, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-m", "work in progress")
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/toryo/wip")
	kept := run(t, work, "rev-parse", "HEAD")
	s.leases.give("person", mirror.Holder{Task: "task1", Generation: 2, Repository: repository, ReadOnly: true})
	here := t.TempDir()
	run(t, here, "init", "--quiet")
	run(t, here, "fetch", "--quiet", s.address("task1", "person"), "refs/toryo/wip")
	if got := run(t, here, "rev-parse", "FETCH_HEAD"); got != kept {
		t.Errorf("fetched %s, want %s", got, kept)
	}
	if output, err := try(t, work, "push", s.address("task1", "person"), "HEAD:refs/heads/mine"); err == nil {
		t.Errorf("a person pushes: %s", output)
	}
}
