package dummy_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/forge/forgetest"
	"github.com/toryo-dev/toryo/internal/task"
)

// fixture is the dummy from outside, as far as people write there.
type fixture struct {
	forgetest.Fixture
	dummy *dummy.Forge
	names atomic.Int64
}

// TestWritten holds the dummy to the rules about what people write, and to those about
// checks and merging, of which the tests of others make use.
func TestWritten(t *testing.T) {
	t.Parallel()
	forgetest.Run(t, &fixture{dummy: dummy.New(task.Gitea, "bot")}, forgetest.Options{Only: []string{
		"Written", "WrittenChanges", "Dismissed", "Checks", "ManyChecks", "CheckLog", "ResolveThread", "MergePull",
	}})
}

func (f *fixture) Forge() forge.Forge { return f.dummy }

func (f *fixture) Repository(testing.TB) string {
	name := fmt.Sprint("team/app", f.names.Add(1))
	f.dummy.AddRepository(name, forge.Remote{})
	f.dummy.SetBranch(name, "main", "c0")
	return name
}

func (f *fixture) Person(_ testing.TB, repository string, access forge.Access) string {
	login := fmt.Sprint("Person", f.names.Add(1))
	f.dummy.SetAccess(repository, login, access)
	return login
}

func (f *fixture) Commit(_ testing.TB, repository, branch string, _ map[string]string) string {
	commit := fmt.Sprint("c", f.names.Add(1))
	f.dummy.SetBranch(repository, branch, commit)
	return commit
}

func (f *fixture) Pull(_ testing.TB, repository, author, _, _, title, _ string) task.Key {
	return f.dummy.AddItem(repository, task.Pull, author, title)
}

func (f *fixture) Comment(_ testing.TB, key task.Key, author, body string) string {
	return f.dummy.AddComment(key, author, body).ID
}

func (f *fixture) EditComment(_ testing.TB, key task.Key, _, id, body string) {
	f.dummy.Edit(key, id, body)
}

func (f *fixture) RemoveComment(_ testing.TB, key task.Key, _, id string) {
	f.dummy.DeleteComment(key, id)
}

func (f *fixture) Review(_ testing.TB, key task.Key, author string, verdict forge.Verdict, body string, comments map[forge.Anchor]string) {
	f.dummy.AddReview(key, forge.Review{Author: author, Verdict: verdict, Body: body})
	for at, text := range comments {
		f.dummy.AddThread(key, author, at.Path, at.Line, text)
	}
}

func (f *fixture) Reply(_ testing.TB, key task.Key, author string, thread forge.ReviewThread, body string) string {
	return f.dummy.AddReply(key, thread.ID, author, body).ID
}

func (f *fixture) EditReview(_ testing.TB, key task.Key, _, id, body string) {
	f.dummy.EditReview(key, id, body)
}

func (f *fixture) Dismiss(_ testing.TB, key task.Key, _, id string) { f.dummy.Dismiss(key, id) }

func (f *fixture) Close(_ testing.TB, key task.Key, _ string) { f.dummy.Close(key) }

func (f *fixture) Check(_ testing.TB, repository, commit, name string, state forge.StatusState, log string) {
	f.dummy.SetCheck(repository, commit, forge.Check{Name: name, State: state}, log)
}
