package drill

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

const (
	// tasksIn is how many tasks are about one repository. Each leaves branches and open pull
	// requests there, and nobody has thousands of them.
	tasksIn = 250
	bot     = "toryo"
)

// onBoard is the built-in board.
type onBoard struct{ *site }

// repositories are what the tasks are about.
func (b onBoard) repositories() (names []string) {
	for n := range 1 + (b.drill.Tasks-1)/tasksIn {
		names = append(names, fmt.Sprintf("drill/app-%d", n+1))
	}
	return names
}

// path is that of a repository in the server's interface.
func (onBoard) path(repository string) string { return "/api/board/repositories/" + repository }

// Settings implements Place.
func (onBoard) Settings() string { return "" }

// Import implements Place.
func (b onBoard) Import(ctx context.Context, folder string) error {
	for _, name := range b.repositories() {
		if _, err := b.toryo(ctx, "board", "import", folder, "--name", name, "--data", b.data(0)); err != nil {
			return err
		}
	}
	return nil
}

// Give implements Place. If the answer is lost, there will be two with the same title.
func (b onBoard) Give(ctx context.Context, title string) (Item, error) {
	in := b.repositories()
	name := in[int(b.given.Load())%len(in)]
	var issue wire.BoardItem
	err := b.call(ctx, http.MethodPost, b.path(name)+"/issues", wire.NewBoardIssue{Title: title, Body: "As the title says.", Assignees: []string{bot}}, &issue)
	return Item{name, issue.Number}, err
}

// Look implements Place.
func (b onBoard) Look(ctx context.Context) (is Content, err error) {
	for _, name := range b.repositories() {
		one, err := b.lookAt(ctx, name)
		if err != nil {
			return is, err
		}
		is.Issues, is.Pulls = append(is.Issues, one.Issues...), append(is.Pulls, one.Pulls...)
		is.Branches = append(is.Branches, one.Branches...)
	}
	return is, nil
}

// lookAt returns what is in a repository.
func (b onBoard) lookAt(ctx context.Context, repository string) (is Content, err error) {
	issues, err := b.items(ctx, repository, "issues")
	if err != nil {
		return is, err
	}
	pulls, err := b.items(ctx, repository, "pulls")
	if err != nil {
		return is, err
	}
	is.Issues, is.Pulls = make([]Issue, len(issues)), make([]Pull, len(pulls))
	linked := map[string][]Item{} // issues, by the name of the pull request that is linked to them
	var mu sync.Mutex
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(looksAtOnce)
	for i, item := range issues {
		group.Go(func() error {
			var details wire.BoardDetails
			if err := b.get(inGroup, fmt.Sprintf("%s/issues/%d", b.path(repository), item.Number), &details); err != nil {
				return err
			}
			is.Issues[i] = Issue{Item: Item{repository, item.Number}, Assigned: slices.Contains(details.Assignees, bot), Labels: details.Labels}
			for _, comment := range details.Comments {
				is.Issues[i].Comments = append(is.Issues[i].Comments, comment.Body)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, link := range details.LinkedPulls {
				linked[link.Item] = append(linked[link.Item], is.Issues[i].Item)
			}
			return nil
		})
	}
	for i, item := range pulls {
		group.Go(func() (err error) {
			is.Pulls[i], err = b.pull(inGroup, repository, item)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return is, err
	}
	for i, item := range pulls {
		is.Pulls[i].Issues = linked[item.Item]
	}
	is.Branches, err = b.branches(ctx, repository)
	return is, err
}

// pull is a pull request with its change and its reviews.
func (b onBoard) pull(ctx context.Context, repository string, item wire.BoardItem) (Pull, error) {
	at := fmt.Sprintf("%s/pulls/%d", b.path(repository), item.Number)
	var diff wire.BoardDiff
	if err := b.get(ctx, at+"/diff", &diff); err != nil {
		return Pull{}, err
	}
	var given wire.BoardReviews
	if err := b.get(ctx, at+"/reviews", &given); err != nil {
		return Pull{}, err
	}
	pull := Pull{Item: Item{repository, item.Number}, Branch: item.Head, Head: diff.Head, Diff: diff.Patch}
	for _, review := range given.Reviews {
		if review.Author == bot {
			pull.Reviews = append(pull.Reviews, review.Commit)
		}
	}
	return pull, nil
}

// items are all issues or pull requests.
func (b onBoard) items(ctx context.Context, repository, kind string) (all []wire.BoardItem, err error) {
	for {
		after := int64(0)
		if len(all) > 0 {
			after = all[len(all)-1].Number
		}
		var page wire.BoardItems
		if err := b.get(ctx, fmt.Sprintf("%s/%s?state=all&limit=%d&after=%d", b.path(repository), kind, pageOf, after), &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if len(page.Items) < pageOf {
			return all, nil
		}
	}
}

// branches are those of a repository. The board's repositories are folders.
func (b onBoard) branches(ctx context.Context, repository string) (all []Branch, err error) {
	folder := filepath.Join(b.drill.Dir, "board", filepath.FromSlash(repository)+".git")
	git := exec.CommandContext(ctx, "git", "--git-dir", folder, "for-each-ref", "--format=%(refname:short)", "refs/heads")
	git.Env = b.drill.Environ
	said, err := git.Output()
	if err != nil {
		return nil, task.Wrap(task.Internal, err, "the branches on the board cannot be listed")
	}
	for name := range strings.FieldsSeq(string(said)) {
		all = append(all, Branch{repository, name})
	}
	return all, nil
}
