package relational

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// titleLetters is how many letters of a question are read where it is only named.
const titleLetters = `300`

const (
	reviewColumns = `id, owner, question, custom_question, answer, judgement, pull, head_commit, verdict, state, cause, held_until, claim, created_at`
	wholeColumns  = reviewColumns + `, ''`
	briefColumns  = `id, owner, question, SUBSTR(custom_question, 1, ` + titleLetters + `), '', '', pull, head_commit, verdict, state, cause, held_until, claim, created_at, ` + titleColumn
	// titleColumn is the beginning of the question of a review.
	titleColumn = `SUBSTR(COALESCE((SELECT body FROM questions WHERE questions.id = reviews.question), reviews.custom_question), 1, ` + titleLetters + `)`
)

func scanReview(r row) (x store.Review, err error) {
	var question sql.NullString
	var judgement, pull string
	var held int64
	err = r.Scan(&x.ID, &x.Owner, &question, &x.CustomQuestionText, &x.AnswerText, &judgement, &pull, &x.HeadCommit, &x.Verdict,
		&x.State, &x.Cause, &held, &x.Claim, micros{&x.CreatedAt}, &x.Title)
	if err != nil {
		return store.Review{}, err
	}
	x.HeldUntil = heldUntil(held)
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
	x.ID, x.CreatedAt, x.Judgement, x.Title = newID(), made(x.CreatedAt), rawJSON(string(x.Judgement)), ""
	x.HeldUntil = heldUntil(heldMicros(x.HeldUntil))
	err = s.write(ctx, func(q session) error {
		if err := dropRefused(ctx, q, pull, x.HeadCommit, writes); err != nil {
			return err
		}
		_, err := q.exec(ctx, `INSERT INTO reviews (`+reviewColumns+`) VALUES (`+listOf(14)+`)`,
			x.ID, x.Owner, sql.NullString{String: x.QuestionID, Valid: x.QuestionID != ""}, x.CustomQuestionText, x.AnswerText,
			string(x.Judgement), pull, x.HeadCommit, x.Verdict, x.State, x.Cause, heldMicros(x.HeldUntil), x.Claim, x.CreatedAt.UnixMicro())
		switch q.dialect.Classify(err) {
		case MissingReference:
			return noQuestion(x.QuestionID)
		case Duplicate:
			return task.Errorf(task.Conflict, "commit %s of %s has been reviewed", x.HeadCommit, pull)
		}
		if err == nil {
			_, err = putActions(ctx, q, writes, nil)
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
	return find(ctx, s, noReview(id), scanReview, `SELECT `+wholeColumns+` FROM reviews WHERE id = ?`, id)
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
	columns := reviewColumns + `, ` + titleColumn
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
	condition := ownOrShared
	if filter.Pulls {
		condition += ` OR reviews.pull <> ''`
	}
	where.add(`(`+condition+`)`, filter.Reader, assigneeMark.fold(filter.Reader))
}

// ownOrShared is the condition for reviews of a person's own and those that are shared with
// the person. Its arguments are the login and the folded login.
const ownOrShared = `reviews.owner = ? OR reviews.id IN (SELECT review FROM review_shares WHERE review_shares.folded IN ('', ?))`

// maxSearchWords is how many words of a search count: each is looked for in all texts.
const maxSearchWords = 8

// addReviewText asks for each word of a text in the question, the name of the pull request or
// that of the owner. Of the letters only A to Z are the same in both cases, in every database.
func addReviewText(where *conditions, text string) {
	words := strings.Fields(text)
	for _, word := range words[:min(len(words), maxSearchWords)] {
		pattern := "%" + likeEscaper.Replace(word) + "%"
		where.add(`(LOWER(custom_question) LIKE LOWER(?) ESCAPE '!' OR LOWER(pull) LIKE LOWER(?) ESCAPE '!' OR LOWER(reviews.owner) LIKE LOWER(?) ESCAPE '!'
			OR question IN (SELECT id FROM questions WHERE LOWER(body) LIKE LOWER(?) ESCAPE '!'))`, pattern, pattern, pattern, pattern)
	}
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
		question, _, err := first(ctx, q, scanText, `SELECT COALESCE(question, '') FROM reviews WHERE id = ?`, id)
		if err != nil {
			return err
		}
		deleted, err := q.exec(ctx, `DELETE FROM reviews WHERE id = ?`, id)
		if err == nil && deleted == 0 {
			err = noReview(id)
		}
		if err == nil && question != "" {
			err = dropQuestion(ctx, q, question)
		}
		return err
	})
}

// dropQuestion removes a question that has an owner and no review. It is locked first, so
// that nobody refers to it meanwhile.
func dropQuestion(ctx context.Context, q session, id string) error {
	if _, _, err := first(ctx, q, scanText, `SELECT id FROM questions WHERE id = ? `+q.dialect.LockRows, id); err != nil {
		return err
	}
	_, err := q.exec(ctx, `DELETE FROM questions WHERE id = ? AND owner <> '' AND NOT EXISTS (SELECT 1 FROM reviews WHERE reviews.question = questions.id)`, id)
	return err
}

// SetReviewState implements store.Reviews.
func (s *Store) SetReviewState(ctx context.Context, from store.ReviewState, to store.Review, now time.Time) error {
	if err := checkJSON("review", to.Judgement); err != nil {
		return err
	}
	claim := to.Claim
	if to.State != store.Judging { // nobody works on it from then on
		claim = ""
	}
	set, args := `state = ?, cause = ?, held_until = ?, claim = ?`, []any{to.State, cleanText(to.Cause), heldMicros(to.HeldUntil), claim}
	if to.State == store.Judged {
		set, args = set+`, judgement = ?`, append(args, string(to.Judgement))
	}
	is, args := `state = ?`, append(args, to.ID, from)
	switch from {
	case store.Judging:
		is, args = is+` AND claim = ?`, append(args, to.Claim)
	case store.NotJudged: // so is one that nobody works on any more
		is, args = `(state = ? OR state = ? AND held_until <= ?)`, append(args, store.Judging, now.UnixMicro())
	}
	return s.write(ctx, func(q session) error {
		changed, err := q.exec(ctx, `UPDATE reviews SET `+set+` WHERE id = ? AND `+is, args...)
		if err != nil || changed > 0 {
			return err
		}
		found, err := exists(ctx, q, `SELECT 1 FROM reviews WHERE id = ?`, to.ID)
		if err == nil && !found {
			return noReview(to.ID)
		}
		if err == nil {
			err = task.Errorf(task.Conflict, "somebody else has gone on with review %s", to.ID)
		}
		return err
	})
}

// heldMicros is how the moment is stored until which somebody works on something: 0 for none.
func heldMicros(until time.Time) int64 {
	if until.IsZero() {
		return 0
	}
	return until.UnixMicro()
}

// heldUntil is the moment as it comes back.
func heldUntil(micros int64) (until time.Time) {
	if micros > 0 {
		until = time.UnixMicro(micros).UTC()
	}
	return until
}
