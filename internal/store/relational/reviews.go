package relational

import (
	"context"
	"database/sql"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const questionColumns = `id, body, purpose, grading_impression, created_at`

func scanQuestion(r row) (x store.Question, err error) {
	err = r.Scan(&x.ID, &x.Text, &x.PurposeText, &x.GradingImpressionText, micros{&x.CreatedAt})
	return x, err
}

// AddQuestion implements store.Questions.
func (s *Store) AddQuestion(ctx context.Context, x store.Question) (store.Question, error) {
	x.ID, x.CreatedAt = newID(), made(x.CreatedAt)
	err := s.write(ctx, func(q session) error {
		_, err := q.exec(ctx, `INSERT INTO questions (`+questionColumns+`) VALUES (`+listOf(5)+`)`,
			x.ID, x.Text, x.PurposeText, x.GradingImpressionText, x.CreatedAt.UnixMicro())
		return err
	})
	return orNothing(x, err)
}

// Question implements store.Questions.
func (s *Store) Question(ctx context.Context, id string) (store.Question, error) {
	return find(ctx, s, noQuestion(id), scanQuestion, `SELECT `+questionColumns+` FROM questions WHERE id = ?`, id)
}

func noQuestion(id string) error { return task.Errorf(task.NotFound, "there is no question %q", id) }

// ListQuestions implements store.Questions.
func (s *Store) ListQuestions(ctx context.Context) ([]store.Question, error) {
	return all(ctx, s, scanQuestion, `SELECT `+questionColumns+` FROM questions ORDER BY id`)
}

const (
	reviewColumns = `id, owner, question, custom_question, answer, judgement, pull, head_commit, verdict, created_at`
	briefColumns  = `id, owner, question, substr(custom_question, 1, 1000), '', '', pull, head_commit, verdict, created_at`
)

func scanReview(r row) (x store.Review, err error) {
	var question sql.NullString
	var judgement, pull string
	err = r.Scan(&x.ID, &x.Owner, &question, &x.CustomQuestionText, &x.AnswerText, &judgement, &pull, &x.HeadCommit, &x.Verdict, micros{&x.CreatedAt})
	if err != nil {
		return store.Review{}, err
	}
	x.QuestionID, x.Judgement = question.String, rawJSON(judgement)
	if pull != "" {
		x.Pull, err = task.ParseKey(pull)
	}
	return x, err
}

// AddReview implements store.Reviews.
func (s *Store) AddReview(ctx context.Context, x store.Review, writes ...store.Action) (store.Review, error) {
	pull, err := checkReview(x)
	if err != nil {
		return store.Review{}, err
	}
	x.ID, x.CreatedAt, x.Judgement = newID(), made(x.CreatedAt), rawJSON(string(x.Judgement))
	err = s.write(ctx, func(q session) error {
		if err := dropRefused(ctx, q, pull, x.HeadCommit, writes); err != nil {
			return err
		}
		_, err := q.exec(ctx, `INSERT INTO reviews (`+reviewColumns+`) VALUES (`+listOf(10)+`)`,
			x.ID, x.Owner, sql.NullString{String: x.QuestionID, Valid: x.QuestionID != ""}, x.CustomQuestionText, x.AnswerText,
			string(x.Judgement), pull, x.HeadCommit, x.Verdict, x.CreatedAt.UnixMicro())
		switch q.dialect.Classify(err) {
		case MissingReference:
			return noQuestion(x.QuestionID)
		case Duplicate:
			return task.Errorf(task.Conflict, "commit %s of %s has been reviewed", x.HeadCommit, pull)
		}
		if err == nil {
			_, err = putActions(ctx, q, writes)
		}
		return err
	})
	return orNothing(x, err)
}

// dropRefused makes room for another review of a commit whose review the forge refused for
// good: the write that submits it has the same key.
func dropRefused(ctx context.Context, q session, pull, commit string, writes []store.Action) error {
	for _, write := range writes {
		if write.Kind != "submit_review" {
			continue
		}
		dropped, err := q.exec(ctx, `DELETE FROM actions WHERE idempotency_key = ? AND status = ?`, write.IdempotencyKey, store.Refused)
		if err == nil && dropped > 0 {
			_, err = q.exec(ctx, `DELETE FROM reviews WHERE pull = ? AND head_commit = ?`, pull, commit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkReview returns the pull request of a review as text, "" for none.
func checkReview(x store.Review) (pull string, err error) {
	if err := checkName("owner of a review", x.Owner); err != nil {
		return "", err
	}
	if err := checkJSON("judgement", x.Judgement); err != nil {
		return "", err
	}
	if x.Pull == (task.Key{}) {
		return "", nil
	}
	if err := x.Pull.Validate(); err != nil {
		return "", err
	}
	if err := requireName("head commit of a reviewed pull request", x.HeadCommit); err != nil {
		return "", err
	}
	return x.Pull.String(), checkName("repository", x.Pull.Repository)
}

// Review implements store.Reviews.
func (s *Store) Review(ctx context.Context, id string) (store.Review, error) {
	return find(ctx, s, noReview(id), scanReview, `SELECT `+reviewColumns+` FROM reviews WHERE id = ?`, id)
}

func noReview(id string) error { return task.Errorf(task.NotFound, "there is no review %q", id) }

// ListReviews implements store.Reviews.
func (s *Store) ListReviews(ctx context.Context, filter store.ReviewFilter) ([]store.Review, error) {
	if err := checkLimit(filter.Limit); err != nil {
		return nil, err
	}
	var where conditions
	where.addText(`owner`, filter.Owner)
	if filter.Pull != (task.Key{}) {
		where.add(`pull = ?`, filter.Pull.String())
	}
	if filter.After != "" {
		where.add(`id > ?`, filter.After)
	}
	if filter.Before != "" {
		where.add(`id < ?`, filter.Before)
	}
	addReader(&where, filter)
	addReviewText(&where, filter.Text)
	switch filter.Kind {
	case store.DocumentReviews:
		where.add(`pull = ''`)
	case store.PullReviews:
		where.add(`pull <> ''`)
	}
	order := ` ORDER BY id`
	if filter.Newest {
		order += ` DESC`
	}
	columns := reviewColumns
	if filter.Brief {
		columns = briefColumns
	}
	query, args := limited(`SELECT `+columns+` FROM reviews`+where.text()+order, where.args, filter.Limit)
	return all(ctx, s, scanReview, query, args...)
}

// addReader asks for what someone may read.
func addReader(where *conditions, filter store.ReviewFilter) {
	if filter.Reader == "" {
		return
	}
	readable := `owner = ? OR id IN (SELECT review FROM review_shares WHERE folded IN ('', ?))`
	if filter.Pulls {
		readable += ` OR pull <> ''`
	}
	where.add(`(`+readable+`)`, filter.Reader, assigneeMark.fold(filter.Reader))
}

// addReviewText asks for a text in the question or in the name of the pull request. Of the
// letters only A to Z are the same in both cases, in every database.
func addReviewText(where *conditions, text string) {
	if text == "" {
		return
	}
	pattern := "%" + likeEscaper.Replace(text) + "%"
	where.add(`(LOWER(custom_question) LIKE LOWER(?) ESCAPE '!' OR LOWER(pull) LIKE LOWER(?) ESCAPE '!'
		OR question IN (SELECT id FROM questions WHERE LOWER(body) LIKE LOWER(?) ESCAPE '!'))`, pattern, pattern, pattern)
}

// Verdicts implements store.Reviews.
func (s *Store) Verdicts(ctx context.Context, pull task.Key) (map[string]string, error) {
	type verdict struct{ commit, text string }
	found, err := all(ctx, s, func(r row) (v verdict, err error) {
		return v, r.Scan(&v.commit, &v.text)
	}, `SELECT head_commit, verdict FROM reviews WHERE pull = ? AND pull <> '' AND verdict <> ''`, pull.String())
	if err != nil {
		return nil, err
	}
	verdicts := make(map[string]string, len(found))
	for _, one := range found {
		verdicts[one.commit] = one.text
	}
	return verdicts, nil
}

// ReviewedPulls implements store.Reviews.
func (s *Store) ReviewedPulls(ctx context.Context, since time.Time) ([]task.Key, error) {
	return all(ctx, s, func(r row) (task.Key, error) {
		var pull string
		if err := r.Scan(&pull); err != nil {
			return task.Key{}, err
		}
		return task.ParseKey(pull)
	}, `SELECT DISTINCT pull FROM reviews WHERE pull <> '' AND created_at >= ? ORDER BY pull`, since.UnixMicro())
}

// DeleteReview implements store.Reviews.
func (s *Store) DeleteReview(ctx context.Context, id string) error {
	return s.write(ctx, func(q session) error {
		deleted, err := q.exec(ctx, `DELETE FROM reviews WHERE id = ?`, id)
		if err == nil && deleted == 0 {
			err = noReview(id)
		}
		return err
	})
}
