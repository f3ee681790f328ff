package forgetest

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Fixture is the forge from outside: what people do on it. Its methods fail the
// test when they cannot do their work; tests that this forge cannot have are named
// in [Options]. They may be called from several tests at once.
type Fixture interface {
	People
	Conversation
	Code

	// Forge returns the adapter under test, which acts as the bot.
	Forge() forge.Forge
}

// People makes accounts and repositories.
type People interface {
	// Repository makes a private repository with one commit on "main", which has
	// the file README.md with the lines one, two and three. The bot has
	// WriteAccess to it. It returns the name.
	Repository(t testing.TB) string
	// Person makes an account with that access to the repository. The login has
	// a capital letter where the forge allows it.
	Person(t testing.TB, repository string, access forge.Access) string
	// RemovePerson removes the account for good.
	RemovePerson(t testing.TB, login string)
	// RenameRepository renames a repository and returns its new name.
	RenameRepository(t testing.TB, repository string) string
}

// Conversation does what people do on items. Where an actor is named, it is that
// person who acts.
type Conversation interface {
	// Issue opens an issue.
	Issue(t testing.TB, repository, author, title, body string) task.Key
	// Comment comments on an item and returns the id.
	Comment(t testing.TB, key task.Key, author, body string) string
	// EditComment changes a comment, also one on a line.
	EditComment(t testing.TB, key task.Key, author, id, body string)
	// RemoveComment removes a comment, also one on a line.
	RemoveComment(t testing.TB, key task.Key, author, id string)
	// Label puts labels that exist on the item, or creates them, or takes them
	// off, one after the other.
	Label(t testing.TB, key task.Key, actor string, on bool, labels ...string)
	// Assign sets the assignees.
	Assign(t testing.TB, key task.Key, actor string, logins ...string)
	// Close closes an item.
	Close(t testing.TB, key task.Key, actor string)
	// React adds a reaction to an item.
	React(t testing.TB, key task.Key, actor string, reaction forge.Reaction)
}

// Code does what people do with commits and pull requests.
type Code interface {
	// Commit commits files to a branch, which is made from main if it is missing,
	// and returns the commit.
	Commit(t testing.TB, repository, branch string, files map[string]string) string
	// Pull opens a pull request.
	Pull(t testing.TB, repository, author, head, base, title, body string) task.Key
	// Review submits a review with comments on lines.
	Review(t testing.TB, key task.Key, author string, verdict forge.Verdict, body string, comments map[forge.Anchor]string)
	// Reply writes into a review thread and returns the id of the comment.
	Reply(t testing.TB, key task.Key, author string, thread forge.ReviewThread, body string) string
	// EditReview changes the text of a review. On forges where that is a comment like
	// any other it is not called.
	EditReview(t testing.TB, key task.Key, author, id, body string)
	// Dismiss dismisses a review. The actor has AdminAccess.
	Dismiss(t testing.TB, key task.Key, actor, id string)
	// Check lets a job of continuous integration say something about a commit, and
	// print a log.
	Check(t testing.TB, repository, commit, name string, state forge.StatusState, log string)
	// Merge merges a pull request.
	Merge(t testing.TB, key task.Key, actor string)
}

// plain makes text that has nothing to neutralise.
func plain(raw string) forge.Text { return forge.Neutraliser{}.Text(raw) }

func title(raw string) forge.Text { return forge.Neutraliser{}.Title(raw) }

func wantCode(t testing.TB, err error, codes ...task.Code) {
	t.Helper()
	if got := task.CodeOf(err); !slices.Contains(codes, got) {
		t.Errorf("error %v has the code %q, want one of %q", err, got, codes)
	}
}

func must[T any](t testing.TB) func(T, error) T {
	t.Helper()
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func try(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// difference says how two values differ, or "".
func difference(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return fmt.Sprintf("\n got %+v\nwant %+v", got, want)
}
