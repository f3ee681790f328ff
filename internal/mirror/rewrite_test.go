package mirror_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/signing"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// makeKey makes a key as an operator would.
func makeKey(t *testing.T, file string) {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		testkit.LeaveOut(t, "ssh-keygen")
	}
	if output, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

// shown is a commit as people see it: who made it, and what it says.
func shown(t *testing.T, dir, commit string) string {
	t.Helper()
	return run(t, dir, "show", "--no-patch", "--format=%an <%ae> | %cn <%ce> | %B", commit)
}

// What is published is the server's own commit: its author and what it says about others
// are not for an agent to choose. A run that goes on begins with it.
func TestPublishedCommitsAreTheServers(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *mirror.Options) { o.Identity = mirror.Identity{Name: "Bot", Email: "bot@example.org"} })
	work := s.branch(t)
	base := run(t, work, "rev-parse", "HEAD")
	commit(t, work, "b.txt")
	commit(t, work, "c.txt")
	run(t, work, "commit", "--quiet", "--amend", "--author=Linus <linus@example.org>", "-m",
		"Fix it\n\nBecause.\n\nSigned-off-by: Linus <linus@example.org>\nCo-authored-by: Eve <eve@example.org>")
	pushed := run(t, work, "rev-parse", "HEAD")
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/toryo/1")
	p := publication("toryo/1", pushed)
	p.CoAuthors = []string{"Alice <1+alice@users.example.org>"}
	made, err := s.Publish(t.Context(), p)
	must(t, err)
	forge := s.origin.path(repository.Name)
	if got := run(t, forge, "rev-parse", "toryo/1"); got != made || made == pushed {
		t.Errorf("the forge has %s, published was %s of %s", got, made, pushed)
	}
	want := "Bot <bot@example.org> | Bot <bot@example.org> | Fix it\n\nBecause.\n\nCo-authored-by: Alice <1+alice@users.example.org>"
	if diff := cmp.Diff(want, shown(t, forge, made)); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(shown(t, forge, made+"^"), "Bot <bot@example.org> | Bot") || run(t, forge, "rev-parse", made+"~2") != base {
		t.Errorf("below it is %s", shown(t, forge, made+"^"))
	}
	if run(t, work, "rev-parse", "HEAD^{tree}") != run(t, forge, "rev-parse", made+"^{tree}") {
		t.Error("it has other files")
	}
	for range 2 { // also on a server that was started again
		again, err := s.Publish(t.Context(), p)
		if err != nil || again != made {
			t.Errorf("published again it is %s, %v", again, err)
		}
		s.Stop()
		s.open(t, nil)
	}
	// The same run adds to what it has, which is not what was published.
	own := commit(t, work, "own.txt")
	run(t, work, "push", "--quiet", "--force", "origin", "HEAD:refs/heads/toryo/1")
	made1, err := s.Publish(t.Context(), publication("toryo/1", own)) // without the author of before
	must(t, err)
	if run(t, forge, "rev-parse", made1+"^") != made {
		t.Error("what the forge has was made again")
	}
	made = made1
	// The next run has it, and adds to it.
	s.begin(t, "task1")
	next := t.TempDir()
	run(t, "", "clone", "--quiet", "--branch=toryo/1", s.address("task1", "token-task1"), next)
	if got := run(t, next, "rev-parse", "HEAD"); got != made {
		t.Errorf("a run that goes on begins with %s, want %s", got, made)
	}
	more := commit(t, next, "d.txt")
	run(t, next, "push", "--quiet", "origin", "HEAD:refs/heads/toryo/1")
	made2, err := s.Publish(t.Context(), publication("toryo/1", more))
	must(t, err)
	if run(t, forge, "rev-parse", made2+"^") != made {
		t.Error("what was published before was made again")
	}
}

// What others wrote stays theirs, also when the forge does not lead to it any more.
func TestCommitsOfOthersStayTheirs(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	address := s.begin(t, "task1")
	work := t.TempDir()
	run(t, "", "clone", "--quiet", address, work)
	theirs := run(t, work, "rev-parse", "HEAD")
	run(t, work, "checkout", "--quiet", "-b", "toryo/1")
	tip := commit(t, work, "b.txt")
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/toryo/1")
	forge := s.origin.path(repository.Name)
	run(t, forge, "update-ref", "refs/heads/main", "main~2") // somebody has thrown them away
	must(t, s.Fetch(t.Context(), repository, 0))
	made, err := s.Publish(t.Context(), publication("toryo/1", tip))
	must(t, err)
	if got := run(t, forge, "rev-parse", made+"^"); got != theirs {
		t.Errorf("below it is %s, want %s", got, theirs)
	}
}

// Git itself finds the signature good.
func TestPublishedCommitsAreSigned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run(t, dir, "init", "--quiet") // a folder that git works in
	key := filepath.Join(dir, "key")
	makeKey(t, key)
	text, err := os.ReadFile(key)
	must(t, err)
	signer, err := signing.SSH(text)
	must(t, err)
	public, err := signer.Public(t.Context())
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "allowed"), []byte("bot@example.org "+public), 0o600))
	s := newSite(t, func(o *mirror.Options) {
		o.Identity = mirror.Identity{Name: "Bot", Email: "bot@example.org", Sign: signer.Sign}
	})
	s.begin(t, "task1")
	_, made := publish(t, s)
	forge := s.origin.path(repository.Name)
	run(t, forge, "-c", "gpg.ssh.allowedSignersFile="+filepath.Join(dir, "allowed"), "verify-commit", made)

	broken := newSite(t, func(o *mirror.Options) {
		o.Identity = mirror.Identity{Name: "Bot", Email: "bot@example.org", Sign: func(context.Context, []byte) (string, error) {
			return "", task.Errorf(task.Internal, "no key")
		}}
	})
	address := broken.begin(t, "task1")
	work := t.TempDir()
	run(t, "", "clone", "--quiet", address, work)
	tip := commit(t, work, "b.txt")
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/toryo/1")
	if err := broken.publishing(t, publication("toryo/1", tip)); err == nil {
		t.Error("it was published without a signature")
	}
}
