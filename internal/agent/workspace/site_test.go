package workspace_test

import (
	"path/filepath"
	"testing"

	"github.com/toryo-dev/toryo/internal/agent/workspace"
	"github.com/toryo-dev/toryo/internal/testkit/gitsite"
)

// site is a forge, a server and a task on it.
type site struct{ *gitsite.Site }

const token = gitsite.Token

func newSite(t testing.TB, files map[string]string) *site {
	t.Helper()
	return &site{gitsite.New(t, files)}
}

func (s *site) options(t testing.TB) workspace.Options {
	t.Helper()
	return workspace.Options{Dir: filepath.Join(t.TempDir(), "run"), URL: s.CloneURL(), Token: token, Base: "main", Branch: "toryo/1"}
}

// prepare seeds the task and gives it a workspace.
func (s *site) prepare(t testing.TB, change func(*workspace.Options)) *workspace.Workspace {
	t.Helper()
	s.Seed(t)
	options := s.options(t)
	if change != nil {
		change(&options)
	}
	w, err := workspace.Prepare(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Remove() })
	return w
}

var (
	put   = gitsite.Put
	read  = gitsite.Read
	run   = gitsite.Run
	try   = gitsite.Try
	space = gitsite.Space
)
