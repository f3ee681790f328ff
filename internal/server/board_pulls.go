package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

type (
	pullInput struct {
		InRepository
		Body wire.NewBoardPull
	}
	pullOutput struct {
		Status int
		Body   wire.BoardItem
	}
	reviewInput struct {
		OnItem
		Body wire.NewBoardReview
	}
	answerInput struct {
		OnItem
		Thread string `path:"thread"`
		Body   wire.BoardText
	}

	diffOutput         struct{ Body wire.BoardDiff }
	boardReviewsOutput struct{ Body wire.BoardReviews }
	boardReviewOutput  struct{ Body wire.BoardReview }
)

func (a boardAPI) registerPulls() {
	operation := func(id, method, below, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: itemsPath(task.Pull) + below, Summary: summary}
	}
	open := operation("open-board-pull", http.MethodPost, "", "Open a pull request, or get the one that is open for the branches")
	open.DefaultStatus = http.StatusCreated
	onBoard(a, access.Operator, open, openPull)
	onBoard(a, access.Viewer, operation("diff-board-pull", http.MethodGet, "/{number}/diff", "What a pull request changes"),
		func(ctx context.Context, person *board.Forge, input *OnItem) (*diffOutput, error) {
			diff, err := person.Diff(ctx, input.key(task.Pull))
			return &diffOutput{wire.BoardDiff(diff)}, err
		})
	onBoard(a, access.Operator, operation("merge-board-pull", http.MethodPost, "/{number}/merge", "Merge a pull request"),
		func(ctx context.Context, person *board.Forge, input *OnItem) (*boardItemOutput, error) {
			merged, err := person.Merge(ctx, input.key(task.Pull))
			return &boardItemOutput{BoardItemOf(merged)}, err
		})
	onBoard(a, access.Viewer, operation("list-board-reviews", http.MethodGet, "/{number}/reviews", "Reviews and the conversations on lines"),
		func(ctx context.Context, person *board.Forge, input *OnItem) (*boardReviewsOutput, error) {
			reviews, err := readReviews(ctx, person, input.key(task.Pull))
			return &boardReviewsOutput{reviews}, err
		})
	review := operation("review-board-pull", http.MethodPost, "/{number}/reviews", "Submit a review")
	review.DefaultStatus = http.StatusCreated
	onBoard(a, access.Operator, review, reviewPull)
	answer := operation("answer-board-thread", http.MethodPost, "/{number}/threads/{thread}", "Answer in a conversation on a line")
	answer.DefaultStatus = http.StatusCreated
	onBoard(a, access.Operator, answer, answerThread)
}

func openPull(ctx context.Context, person *board.Forge, input *pullInput) (*pullOutput, error) {
	if err := wire.CheckText(input.Body.Body); err != nil {
		return nil, err
	}
	item, opened, err := person.CreatePull(ctx, input.repository(), forge.NewPull(input.Body))
	status := http.StatusOK
	if opened {
		status = http.StatusCreated
	}
	return &pullOutput{status, BoardItemOf(item)}, err
}

func reviewPull(ctx context.Context, person *board.Forge, input *reviewInput) (*boardReviewOutput, error) {
	judgement := forge.NewReview{Verdict: forge.Verdict(input.Body.Verdict), Body: input.Body.Body, Commit: input.Body.Commit}
	if err := wire.CheckText(judgement.Body); err != nil {
		return nil, err
	}
	for _, line := range input.Body.Lines {
		if err := wire.CheckText(line.Body); err != nil {
			return nil, err
		}
		side := forge.NewSide
		if line.On.Side == string(forge.OldSide) {
			side = forge.OldSide
		}
		judgement.Lines = append(judgement.Lines, forge.LineRemark{
			Anchor: forge.Anchor{Path: line.On.Path, Side: side, Line: line.On.Line}, Body: line.Body,
		})
	}
	made, err := person.AddReview(ctx, input.key(task.Pull), judgement)
	return &boardReviewOutput{boardReviewOf(made)}, err
}

func answerThread(ctx context.Context, person *board.Forge, input *answerInput) (*boardCommentOutput, error) {
	if err := wire.CheckText(input.Body.Body); err != nil {
		return nil, err
	}
	made, err := person.AddReply(ctx, input.key(task.Pull), input.Thread, input.Body.Body)
	return &boardCommentOutput{BoardCommentOf(made)}, err
}
