package mirror_test

import (
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/mirror"
)

// What was published is described by what git says of it: its files, and where it leaves
// the base branch, also when that has gone on meanwhile.
func TestContents(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.begin(t, "task1")
	pushed, made := publish(t, s)
	origin := s.origin.path(repository.Name)
	base := run(t, origin, "rev-parse", "main")
	work := t.TempDir()
	run(t, "", "clone", "--quiet", origin, work)
	commit(t, work, "later.txt")
	run(t, work, "push", "--quiet", "origin", "HEAD:main")
	s.Changed(repository)
	s.begin(t, "task2") // the mirror has what is new
	contents, err := s.Contents(t.Context(), publication("toryo/1", pushed), made)
	must(t, err)
	want := mirror.Contents{Own: true, Tree: run(t, origin, "rev-parse", made+"^{tree}"), Base: base}
	if contents != want || made == pushed {
		t.Errorf("it has %+v, want %+v", contents, want)
	}
	run(t, work, "push", "--quiet", s.address("task1", "token-task1"), "+"+base+":refs/heads/toryo/1")
	others, err := s.Publish(t.Context(), publication("toryo/1", base))
	must(t, err)
	contents, err = s.Contents(t.Context(), publication("toryo/1", base), others)
	if err != nil || contents.Own || others != base {
		t.Errorf("a commit of somebody else is published as %s and has %+v, %v", others, contents, err)
	}
	if _, err := s.Contents(t.Context(), publication("toryo/1", pushed), strings.Repeat("0", 40)); err == nil {
		t.Error("a commit that is not there is described")
	}
}
