package relational

import (
	"context"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	questionColumns = `id, owner, body, purpose, grading_impression, created_at`
	questionTitles  = `id, owner, SUBSTR(body, 1, ` + titleLetters + `), '', '', created_at`
)

func scanQuestion(r row) (x store.Question, err error) {
	err = r.Scan(&x.ID, &x.Owner, &x.Text, &x.PurposeText, &x.GradingImpressionText, micros{&x.CreatedAt})
	return x, err
}

// AddQuestion implements store.Questions.
func (s *Store) AddQuestion(ctx context.Context, x store.Question) (store.Question, error) {
	if err := checkName("owner of a question", x.Owner); err != nil {
		return store.Question{}, err
	}
	x.ID, x.CreatedAt = newID(), made(x.CreatedAt)
	err := s.write(ctx, func(q session) error {
		same, found, err := sameQuestion(ctx, q, x)
		if err != nil || found {
			x = same
			return err
		}
		_, err = q.exec(ctx, `INSERT INTO questions (`+questionColumns+`) VALUES (`+listOf(6)+`)`,
			x.ID, x.Owner, x.Text, x.PurposeText, x.GradingImpressionText, x.CreatedAt.UnixMicro())
		return err
	})
	return orNothing(x, err)
}

// sameQuestion finds the question of the same owner with the same texts. What is nobody's is
// not compared.
func sameQuestion(ctx context.Context, q session, x store.Question) (same store.Question, found bool, err error) {
	if x.Owner == "" {
		return x, false, nil
	}
	return first(ctx, q, scanQuestion, `SELECT `+questionColumns+` FROM questions
		WHERE owner = ? AND body = ? AND purpose = ? AND grading_impression = ? ORDER BY id LIMIT 1`,
		x.Owner, x.Text, x.PurposeText, x.GradingImpressionText)
}

// Question implements store.Questions.
func (s *Store) Question(ctx context.Context, id string) (store.Question, error) {
	return find(ctx, s, noQuestion(id), scanQuestion, `SELECT `+questionColumns+` FROM questions WHERE id = ?`, id)
}

func noQuestion(id string) error { return task.Errorf(task.NotFound, "there is no question %q", id) }

// ListQuestions implements store.Questions.
func (s *Store) ListQuestions(ctx context.Context, filter store.QuestionFilter) ([]store.Question, error) {
	if err := checkLimit(filter.Limit); err != nil {
		return nil, err
	}
	var where conditions
	where.addText(`id`, filter.ID)
	if filter.After != "" {
		where.add(`id > ?`, filter.After)
	}
	if filter.Reader != "" {
		where.add(`(owner IN ('', ?) OR id IN (SELECT question FROM reviews WHERE question IS NOT NULL AND (`+ownOrShared+`)))`,
			filter.Reader, filter.Reader, assigneeMark.fold(filter.Reader))
	}
	columns, order := questionColumns, ` ORDER BY id`
	if filter.Brief {
		columns = questionTitles
	}
	if filter.Newest {
		order += ` DESC`
	}
	query, args := limited(`SELECT `+columns+` FROM questions`+where.text()+order, where.args, filter.Limit)
	return all(ctx, s, scanQuestion, query, args...)
}
