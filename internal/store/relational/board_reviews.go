package relational

import (
	"context"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const boardReviewColumns = `id, repository, number, author, verdict, body, commit_id, comments, created_at`

func scanBoardReview(r row) (x store.BoardReview, err error) {
	var comments string
	err = r.Scan(&x.ID, &x.Repository, &x.Number, &x.Author, &x.Verdict, &x.Body, &x.Commit, &comments, micros{&x.CreatedAt})
	x.Comments = rawJSON(comments)
	return x, err
}

// AddBoardReview implements store.BoardReviews.
func (s *Store) AddBoardReview(ctx context.Context, x store.BoardReview) (store.BoardReview, error) {
	if x.Verdict != store.BoardApprove && x.Verdict != store.BoardRequestChanges && x.Verdict != store.BoardRemark {
		return store.BoardReview{}, task.Errorf(task.Invalid, "unknown verdict %q; it is approve, request_changes or comment", string(x.Verdict))
	}
	if err := checkJSON("comments of a review", x.Comments); err != nil {
		return store.BoardReview{}, err
	}
	err := s.write(ctx, func(q session) error {
		item, err := boardItem(ctx, q, x.Repository, x.Number, q.dialect.LockRows)
		if err != nil {
			return err
		}
		if item.Kind != task.Pull {
			return noPull(x.Repository, x.Number)
		}
		x.ID, x.CreatedAt, x.Comments = newID(), made(x.CreatedAt), rawJSON(string(x.Comments))
		_, err = q.exec(ctx, `INSERT INTO board_reviews (`+boardReviewColumns+`) VALUES (`+listOf(9)+`)`,
			x.ID, x.Repository, x.Number, x.Author, x.Verdict, x.Body, x.Commit, string(x.Comments), x.CreatedAt.UnixMicro())
		if err != nil {
			return err
		}
		return touchBoardItem(ctx, q, &item, now())
	})
	return orNothing(x, err)
}

func noPull(repository string, number int64) error {
	return task.Errorf(task.NotFound, "there is no pull request %d in repository %q", number, repository)
}

// BoardReviews implements store.BoardReviews.
func (s *Store) BoardReviews(ctx context.Context, repository string, number int64) (reviews []store.BoardReview, err error) {
	err = s.snapshot(ctx, func(q session) error {
		_, found, err := first(ctx, q, scanNumber, `SELECT 1 FROM board_items WHERE repository = ? AND number = ? AND kind = 'pull'`, repository, number)
		if err != nil {
			return err
		}
		if !found {
			return noPull(repository, number)
		}
		reviews, err = list(ctx, q, scanBoardReview, `SELECT `+boardReviewColumns+` FROM board_reviews
			WHERE repository = ? AND number = ? ORDER BY id`, repository, number)
		return err
	})
	return orNothing(reviews, err)
}
