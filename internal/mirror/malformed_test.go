package mirror_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/inspect"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// writeCommit writes a commit as it is, whatever git thinks of it.
func writeCommit(t *testing.T, work, text string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "hash-object", "-t", "commit", "-w", "--stdin", "--literally")
	cmd.Dir, cmd.Stdin = work, strings.NewReader(text)
	output, err := cmd.Output()
	must(t, err)
	return strings.TrimSpace(string(output))
}

// A commit can have lines that look like headers and that git does not count. It is
// published as git reads it, or not at all.
func TestCommitsWithFurtherHeaders(t *testing.T) {
	t.Parallel()
	const who = "a <a@example.org> 1700000000 +0000\n"
	for name, header := range map[string]string{
		"a second tree":              "tree EVIL\n",
		"a late parent":              "parent SECRET\n",
		"a parent in another header": "mergetag object x\n parent SECRET\n",
		"an unknown header":          "x-note y\n",
		"a parent in an unknown one": "x-note y\n parent SECRET\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil)
			address := s.begin(t, "task1")
			work := t.TempDir()
			run(t, "", "clone", "--quiet", address, work)
			base := run(t, work, "rev-parse", "HEAD")
			run(t, work, "checkout", "--quiet", "-b", "toryo/1")
			good := run(t, work, "rev-parse", commit(t, work, "good.txt")+"^{tree}")
			run(t, work, "reset", "--quiet", "--hard", base)
			secret := commit(t, work, "correct-horse-battery")
			evil := run(t, work, "rev-parse", secret+"^{tree}")
			header = strings.NewReplacer("EVIL", evil, "SECRET", secret).Replace(header)
			tip := writeCommit(t, work, "tree "+good+"\nparent "+base+"\nauthor "+who+"committer "+who+header+"\nwork\n")
			run(t, work, "push", "--quiet", "origin", tip+":refs/heads/toryo/1", secret+":refs/toryo/wip")
			by := inspect.New(inspect.Options{Known: redact.New("correct-horse-battery"), Recognised: redact.New()})
			_, inspected := s.Inspect(t.Context(), publication("toryo/1", tip), by)
			made, published := s.Publish(t.Context(), publication("toryo/1", tip))
			if strings.HasPrefix(header, "mergetag") { // which git writes
				must(t, inspected)
				must(t, published)
				forge := s.origin.path(repository.Name)
				if run(t, forge, "rev-parse", made+"^{tree}") != good || run(t, forge, "log", "-1", "--format=%P", made) != base {
					t.Errorf("published was %s", run(t, forge, "cat-file", "commit", made))
				}
				return
			}
			wantCode(t, inspected, task.Unsafe)
			wantCode(t, published, task.Unsafe)
			if has := run(t, s.origin.path(repository.Name), "for-each-ref", "refs/heads/toryo"); has != "" {
				t.Errorf("the forge has %s", has)
			}
		})
	}
}

// What is looked at is what is published, down to the hash.
func TestWhatIsPublishedIsWhatWasInspected(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	work := s.branch(t)
	commit(t, work, "b.txt")
	tip := commit(t, work, "c.txt")
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/toryo/1")
	p := publication("toryo/1", tip)
	p.CoAuthors = []string{"Alice <alice@example.org>"}
	if got := found(t, s, p); len(got) != 0 {
		t.Errorf("found %q", got)
	}
	inspected := run(t, s.dir(), "rev-parse", "refs/made/task1/"+tip)
	made, err := s.Publish(t.Context(), publication("toryo/1", tip))
	must(t, err)
	if made != inspected || made == tip || !strings.Contains(shown(t, s.origin.path(repository.Name), made), "Co-authored-by: Alice") {
		t.Errorf("inspected was %s, published %s: %s", inspected, made, shown(t, s.origin.path(repository.Name), made))
	}
}

// More commits than are looked at are too many, before any is made.
func TestTooManyCommits(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	work := s.branch(t)
	tip, tree := run(t, work, "rev-parse", "HEAD"), run(t, work, "rev-parse", "HEAD^{tree}")
	for range inspect.MaxCommits + 1 {
		tip = run(t, work, "commit-tree", "-m", "x", "-p", tip, tree)
	}
	run(t, work, "push", "--quiet", "origin", tip+":refs/heads/toryo/1")
	if got := found(t, s, publication("toryo/1", tip)); len(got) != 1 || !strings.HasPrefix(got[0], "too_large") {
		t.Errorf("found %q", got)
	}
	if made := run(t, s.dir(), "for-each-ref", "refs/made"); made != "" {
		t.Errorf("made was %s", made)
	}
}
