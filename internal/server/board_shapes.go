package server

import (
	"context"
	"fmt"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// The shapes in which the board is shown, over HTTP and by commands alike.

// eachOf is a list in another shape. It is never nil, so that it is a list in
// JSON too.
func eachOf[From, To any](from []From, shape func(From) To) []To {
	to := make([]To, 0, len(from))
	for _, one := range from {
		to = append(to, shape(one))
	}
	return to
}

// BoardRepositoryOf is a repository as clients see it.
func BoardRepositoryOf(r forge.Repository) wire.BoardRepository {
	return wire.BoardRepository{Name: r.Name, DefaultBranch: r.DefaultBranch}
}

// BoardItemOf is an item as clients see it.
func BoardItemOf(i forge.Item) wire.BoardItem {
	same := func(text string) string { return text }
	return wire.BoardItem{
		Item: itemName(i.Key), Repository: i.Key.Repository, Number: i.Key.Number, Kind: string(i.Key.Kind), Title: i.Title, Body: i.Body,
		State: string(i.State), Author: i.Author, Labels: eachOf(i.Labels, same), Assignees: eachOf(i.Assignees, same),
		CreatedAt: i.CreatedAt, UpdatedAt: i.UpdatedAt, Head: i.Head, HeadCommit: i.HeadCommit, Base: i.Base, Draft: i.Draft,
	}
}

// itemName is how items are named on the board, where issues and pull requests
// share their numbers.
func itemName(key task.Key) string { return fmt.Sprintf("%s#%d", key.Repository, key.Number) }

// BoardCommentOf is a comment as clients see it.
func BoardCommentOf(c task.Comment) wire.BoardComment {
	return wire.BoardComment{ID: c.ID, Author: c.Author, Body: forge.StripMarker(c.Body), CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt}
}

func boardEventOf(e store.BoardEvent) wire.BoardEvent {
	return wire.BoardEvent{Actor: e.Actor, Kind: string(e.Kind), Subject: e.Subject, At: e.At}
}

func boardReviewOf(r forge.Review) wire.BoardReview {
	return wire.BoardReview{ID: r.ID, Author: r.Author, Verdict: string(r.Verdict), Body: forge.StripMarker(r.Body), Commit: r.Commit, At: r.At}
}

func boardThreadOf(t forge.ReviewThread) wire.BoardThread {
	return wire.BoardThread{
		ID: t.ID, On: wire.BoardLine{Path: t.Anchor.Path, Line: t.Anchor.Line, Side: string(t.Anchor.Side)},
		Outdated: t.Outdated, Resolved: t.Resolved, Comments: eachOf(t.Comments, BoardCommentOf),
	}
}

// ReadBoardItem reads an item with all that belongs to it.
func ReadBoardItem(ctx context.Context, person *board.Forge, key task.Key) (wire.BoardDetails, error) {
	item, err := person.Item(ctx, key)
	if err != nil {
		return wire.BoardDetails{}, err
	}
	comments, err := person.Comments(ctx, key)
	if err != nil {
		return wire.BoardDetails{}, err
	}
	timeline, err := person.Timeline(ctx, key)
	if err != nil {
		return wire.BoardDetails{}, err
	}
	details := wire.BoardDetails{
		BoardItem: BoardItemOf(item), Comments: eachOf(comments, BoardCommentOf), Timeline: eachOf(timeline, boardEventOf),
	}
	if key.Kind == task.Pull {
		reviews, err := readReviews(ctx, person, key)
		details.Reviews, details.Threads = reviews.Reviews, reviews.Threads
		return details, err
	}
	linked, err := person.LinkedPulls(ctx, key)
	details.LinkedPulls = eachOf(linked, func(l forge.LinkedPull) wire.BoardLink {
		return wire.BoardLink{Item: itemName(l.Key), State: string(l.State)}
	})
	return details, err
}

func readReviews(ctx context.Context, person *board.Forge, key task.Key) (wire.BoardReviews, error) {
	reviews, err := person.Reviews(ctx, key)
	if err != nil {
		return wire.BoardReviews{}, err
	}
	threads, err := person.ReviewThreads(ctx, key)
	return wire.BoardReviews{Reviews: eachOf(reviews, boardReviewOf), Threads: eachOf(threads, boardThreadOf)}, err
}
