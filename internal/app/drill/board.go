package drill

import (
	"context"
	"fmt"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// repository is what the tasks are about.
const (
	repository = "drill/app"
	boardAPI   = "/api/board/repositories/" + repository
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

// Give implements Place.
func (b onBoard) Give(ctx context.Context, title string) error {
	said, err := b.toryo(ctx, "board", "issue", "create", "--repo", repository, "--title", title, "--body", "As the title says.", "--data", b.data(0))
	if err != nil {
		return err
	}
	item, _, found := strings.Cut(strings.TrimPrefix(said, "opened "), ":")
	if !found {
		return task.Errorf(task.Internal, "the board says %q of a new issue", said)
	}
	_, err = b.toryo(ctx, "board", "issue", "assign", item, "toryo", "--data", b.data(0))
	return err
}

// Look implements Place.
func (b onBoard) Look(ctx context.Context) (issues []Issue, pulls []Pull, err error) {
	var open, requests wire.BoardItems
	if err := b.get(ctx, boardAPI+"/issues?state=all&limit=1000", &open); err != nil {
		return nil, nil, err
	}
	if err := b.get(ctx, boardAPI+"/pulls?state=all&limit=1000", &requests); err != nil {
		return nil, nil, err
	}
	named := map[string]int{}
	for i, x := range requests.Items {
		var diff wire.BoardDiff
		if err := b.get(ctx, fmt.Sprintf("%s/pulls/%d/diff", boardAPI, x.Number), &diff); err != nil {
			return nil, nil, err
		}
		pulls = append(pulls, Pull{Number: x.Number, Diff: diff.Patch})
		named[x.Item] = i
	}
	for _, x := range open.Items {
		var details wire.BoardDetails
		if err := b.get(ctx, fmt.Sprintf("%s/issues/%d", boardAPI, x.Number), &details); err != nil {
			return nil, nil, err
		}
		issue := Issue{Number: x.Number, Labels: details.Labels}
		for _, comment := range details.Comments {
			issue.Comments = append(issue.Comments, comment.Body)
		}
		for _, link := range details.LinkedPulls {
			if i, is := named[link.Item]; is {
				pulls[i].Issues = append(pulls[i].Issues, x.Number)
			}
		}
		issues = append(issues, issue)
	}
	return issues, pulls, nil
}
