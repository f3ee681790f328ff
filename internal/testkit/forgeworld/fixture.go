package forgeworld

import (
	"cmp"
	"slices"
	"strconv"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

type accessLevel = forge.Access

// Fixture lets people act in a world: it is what the conformance suite needs.
type Fixture struct {
	World   *World
	Adapter forge.Forge
	Bot     *User
	Owner   *User
	// AfterReview says what else a review does on this forge; nil for nothing.
	AfterReview func(item *Item, review *Review)
}

// NewFixture makes a bot with a token and someone who owns the repositories.
func NewFixture(world *World, token string) *Fixture {
	world.Lock()
	defer world.Unlock()
	fixture := &Fixture{World: world, Bot: world.NewUser("Bot"), Owner: world.NewUser("Owner")}
	world.Tokens[token] = fixture.Bot
	return fixture
}

// Forge returns the adapter under test.
func (f *Fixture) Forge() forge.Forge { return f.Adapter }

// Repository makes a private repository with one commit.
func (f *Fixture) Repository(t testing.TB) string {
	t.Helper()
	f.World.Lock()
	defer f.World.Unlock()
	repo := f.World.NewRepo(t, f.World.newName(f.Owner.Login))
	repo.Access[f.Owner], repo.Access[f.Bot] = forge.AdminAccess, forge.WriteAccess
	repo.Commit(t, "main", map[string]string{"README.md": "one\ntwo\nthree\n"})
	return repo.Name
}

// Person makes an account.
func (f *Fixture) Person(_ testing.TB, repository string, access forge.Access) string {
	f.World.Lock()
	defer f.World.Unlock()
	user := f.World.NewUser("Person")
	f.World.Repo(repository).Access[user] = access
	return user.Login
}

// RemovePerson removes an account.
func (f *Fixture) RemovePerson(t testing.TB, login string) {
	t.Helper()
	f.World.Lock()
	defer f.World.Unlock()
	user := f.World.must(t, login)
	user.Gone = true
	for _, repo := range f.World.Repos {
		delete(repo.Access, user)
	}
}

// RenameRepository renames a repository.
func (f *Fixture) RenameRepository(_ testing.TB, repository string) string {
	f.World.Lock()
	defer f.World.Unlock()
	repo := f.World.Repo(repository)
	f.World.Renamed[lower(repo.Name)] = repo
	repo.Name += "-renamed"
	return repo.Name
}

// Issue opens an issue.
func (f *Fixture) Issue(t testing.TB, repository, author, title, body string) task.Key {
	t.Helper()
	f.World.Lock()
	defer f.World.Unlock()
	return f.World.Repo(repository).NewItem(task.Issue, f.World.must(t, author), title, body).Key()
}

// Comment comments on an item.
func (f *Fixture) Comment(t testing.TB, key task.Key, author, body string) string {
	t.Helper()
	f.World.Lock()
	defer f.World.Unlock()
	return strconv.FormatInt(f.World.item(t, key).Comment(f.World.must(t, author), body).ID, 10)
}

// EditComment changes a comment.
func (f *Fixture) EditComment(t testing.TB, key task.Key, _, id, body string) {
	t.Helper()
	f.World.Lock()
	defer f.World.Unlock()
	item := f.World.item(t, key)
	for _, comments := range item.commentLists() {
		for _, comment := range *comments {
			if strconv.FormatInt(comment.ID, 10) == id {
				comment.Edit(body)
				return
			}
		}
	}
	t.Fatalf("%s has no comment %s", key, id)
}

// commentLists is the conversation of an item and those on its lines.
func (i *Item) commentLists() []*[]*Comment {
	all := []*[]*Comment{&i.Comments}
	for _, thread := range i.Threads {
		all = append(all, &thread.Comments)
	}
	return all
}

// RemoveComment removes a comment.
func (f *Fixture) RemoveComment(t testing.TB, key task.Key, _, id string) {
	t.Helper()
	f.World.Lock()
	defer f.World.Unlock()
	for _, comments := range f.World.item(t, key).commentLists() {
		*comments = slices.DeleteFunc(*comments, func(c *Comment) bool { return strconv.FormatInt(c.ID, 10) == id })
	}
}

// Label puts labels on the item or takes them off.
func (f *Fixture) Label(t testing.TB, key task.Key, actor string, on bool, labels ...string) {
	t.Helper()
	f.World.Lock()
	defer f.World.Unlock()
	for _, label := range labels {
		if item := f.World.item(t, key); on {
			item.AddLabel(f.World.must(t, actor), label)
		} else {
			item.RemoveLabel(f.World.must(t, actor), label)
		}
	}
}

// Assign sets the assignees.
func (f *Fixture) Assign(t testing.TB, key task.Key, actor string, logins ...string) {
	t.Helper()
	f.World.Lock()
	defer f.World.Unlock()
	var users []*User
	for _, login := range logins {
		users = append(users, f.World.must(t, login))
	}
	f.World.item(t, key).Assign(f.World.must(t, actor), users...)
}

// Close closes an item.
func (f *Fixture) Close(t testing.TB, key task.Key, _ string) {
	t.Helper()
	f.World.Lock()
	defer f.World.Unlock()
	f.World.item(t, key).End(t, forge.Closed)
}

// React adds a reaction to an item.
func (f *Fixture) React(t testing.TB, key task.Key, actor string, reaction forge.Reaction) {
	t.Helper()
	f.World.Lock()
	defer f.World.Unlock()
	f.World.React(&f.World.item(t, key).Reactions, f.World.must(t, actor), reaction)
}

// Commit commits files to a branch.
func (f *Fixture) Commit(t testing.TB, repository, branch string, files map[string]string) string {
	t.Helper()
	f.World.Lock()
	defer f.World.Unlock()
	return f.World.Repo(repository).Commit(t, branch, files)
}

// Pull opens a pull request.
func (f *Fixture) Pull(t testing.TB, repository, author, head, base, title, body string) task.Key {
	t.Helper()
	f.World.Lock()
	defer f.World.Unlock()
	item := f.World.Repo(repository).NewItem(task.Pull, f.World.must(t, author), title, body)
	item.Head, item.Base = head, base
	return item.Key()
}

// Review submits a review with comments on lines.
func (f *Fixture) Review(t testing.TB, key task.Key, author string, verdict forge.Verdict, body string, comments map[forge.Anchor]string) {
	t.Helper()
	f.World.Lock()
	defer f.World.Unlock()
	var lines []LineComment
	for anchor, text := range comments {
		lines = append(lines, LineComment{anchor, text})
	}
	slices.SortFunc(lines, func(a, b LineComment) int { return cmp.Compare(a.Anchor.Line, b.Anchor.Line) })
	item := f.World.item(t, key)
	review := item.Submit(f.World.must(t, author), verdict, body, item.HeadCommit(t), lines)
	if f.AfterReview != nil {
		f.AfterReview(item, review)
	}
}

// Reply writes into a review thread.
func (f *Fixture) Reply(t testing.TB, key task.Key, author string, thread forge.ReviewThread, body string) string {
	t.Helper()
	f.World.Lock()
	defer f.World.Unlock()
	for _, one := range f.World.item(t, key).Threads {
		if strconv.FormatInt(one.Comments[0].ID, 10) == thread.Comments[0].ID {
			made := f.World.NewComment(f.World.must(t, author), body)
			one.Comments = append(one.Comments, made)
			return strconv.FormatInt(made.ID, 10)
		}
	}
	t.Fatalf("%s has no thread %s", key, thread.ID)
	return ""
}

// EditReview changes the text of a review.
func (f *Fixture) EditReview(t testing.TB, key task.Key, _, id, body string) {
	t.Helper()
	f.World.Lock()
	defer f.World.Unlock()
	for _, review := range f.World.item(t, key).Reviews {
		if strconv.FormatInt(review.ID, 10) == id {
			review.Body = body
			return
		}
	}
	t.Fatalf("%s has no review %s", key, id)
}

// Dismiss dismisses a review.
func (f *Fixture) Dismiss(t testing.TB, key task.Key, actor, id string) {
	t.Helper()
	f.World.Lock()
	defer f.World.Unlock()
	item := f.World.item(t, key)
	for _, review := range item.Reviews {
		if strconv.FormatInt(review.ID, 10) == id {
			review.Dismissed = true
			item.note(&Event{Kind: "review_dismissed", Actor: f.World.must(t, actor), Review: review})
			return
		}
	}
	t.Fatalf("%s has no review %s", key, id)
}

// Check lets a job say something about a commit.
func (f *Fixture) Check(_ testing.TB, repository, commit, name string, state forge.StatusState, log string) {
	f.World.Lock()
	defer f.World.Unlock()
	repo := f.World.Repo(repository)
	status := forge.CommitStatus{Commit: commit, Context: name, State: state}
	repo.Jobs = append(repo.Jobs, &Job{Status{f.World.NextID(), status}, log})
}

// Merge merges a pull request: its head becomes the base.
func (f *Fixture) Merge(t testing.TB, key task.Key, _ string) {
	t.Helper()
	f.World.Lock()
	defer f.World.Unlock()
	item := f.World.item(t, key)
	head := item.HeadCommit(t)
	item.End(t, forge.Merged)
	item.Repo.SetBranch(t, item.Base, head)
}
