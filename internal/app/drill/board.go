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

// repository is what the tasks are about.
const (
	repository = "drill/app"
	boardAPI   = "/api/board/repositories/" + repository
	bot        = "toryo"
)

// onBoard is the built-in board.
type onBoard struct{ *site }

// Settings implements Place.
func (onBoard) Settings() string { return "" }

// Import implements Place.
func (b onBoard) Import(ctx context.Context, folder string) error {
	_, err := b.toryo(ctx, "board", "import", folder, "--name", repository, "--data", b.data(0))
	return err
}

// Give implements Place. If the answer is lost, there will be two with the same title.
func (b onBoard) Give(ctx context.Context, title string) (int64, error) {
	var issue wire.BoardItem
	err := b.call(ctx, http.MethodPost, boardAPI+"/issues", wire.NewBoardIssue{Title: title, Body: "As the title says.", Assignees: []string{bot}}, &issue)
	return issue.Number, err
}

// Look implements Place.
func (b onBoard) Look(ctx context.Context) (is Content, err error) {
	issues, err := b.items(ctx, "issues")
	if err != nil {
		return is, err
	}
	pulls, err := b.items(ctx, "pulls")
	if err != nil {
		return is, err
	}
	is.Issues, is.Pulls = make([]Issue, len(issues)), make([]Pull, len(pulls))
	numbers := map[string][]int64{} // of issues, by the name of the pull request that is linked to them
	var mu sync.Mutex
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(looksAtOnce)
	for i, item := range issues {
		group.Go(func() error {
			var details wire.BoardDetails
			if err := b.get(inGroup, fmt.Sprintf("%s/issues/%d", boardAPI, item.Number), &details); err != nil {
				return err
			}
			is.Issues[i] = Issue{Number: item.Number, Assigned: slices.Contains(details.Assignees, bot), Labels: details.Labels}
			for _, comment := range details.Comments {
				is.Issues[i].Comments = append(is.Issues[i].Comments, comment.Body)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, link := range details.LinkedPulls {
				numbers[link.Item] = append(numbers[link.Item], item.Number)
			}
			return nil
		})
	}
	for i, item := range pulls {
		group.Go(func() error {
			var diff wire.BoardDiff
			err := b.get(inGroup, fmt.Sprintf("%s/pulls/%d/diff", boardAPI, item.Number), &diff)
			is.Pulls[i] = Pull{Number: item.Number, Branch: item.Head, Diff: diff.Patch}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return is, err
	}
	for i, item := range pulls {
		is.Pulls[i].Issues = numbers[item.Item]
	}
	is.Branches, err = b.branches(ctx)
	return is, err
}

// items are all issues or pull requests.
func (b onBoard) items(ctx context.Context, kind string) (all []wire.BoardItem, err error) {
	for {
		after := int64(0)
		if len(all) > 0 {
			after = all[len(all)-1].Number
		}
		var page wire.BoardItems
		if err := b.get(ctx, fmt.Sprintf("%s/%s?state=all&limit=%d&after=%d", boardAPI, kind, pageOf, after), &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if len(page.Items) < pageOf {
			return all, nil
		}
	}
}

// branches are those of the repository. The board's repositories are folders.
func (b onBoard) branches(ctx context.Context) (names []string, err error) {
	folder := filepath.Join(b.drill.Dir, "board", filepath.FromSlash(repository)+".git")
	git := exec.CommandContext(ctx, "git", "--git-dir", folder, "for-each-ref", "--format=%(refname:short)", "refs/heads")
	git.Env = b.drill.Environ
	said, err := git.Output()
	if err != nil {
		return nil, task.Wrap(task.Internal, err, "the branches on the board cannot be listed")
	}
	return strings.Fields(string(said)), nil
}
