package relational

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const threadColumns = `id, review, owner, language, spoken, conversation_summary, summary_up_to_turn, last_section_turn, last_section_numbers, created_at`

func scanThread(r row) (store.Thread, error) { return scanThreadAnd(r) }

// scanThreadAnd scans a thread and what else the row has.
func scanThreadAnd(r row, more ...any) (x store.Thread, err error) {
	var numbers string
	err = r.Scan(append([]any{
		&x.ID, &x.ReviewID, &x.Owner, &x.Language, &x.Spoken, &x.ConversationSummary, &x.SummaryUpToTurn,
		&x.LastSectionMentionTurn, &numbers, micros{&x.CreatedAt},
	}, more...)...)
	if err != nil {
		return store.Thread{}, err
	}
	if err := json.Unmarshal([]byte(numbers), &x.LastSectionParagraphNumbers); err != nil {
		return store.Thread{}, fmt.Errorf("paragraph numbers of thread %s: %w", x.ID, err)
	}
	return x, nil
}

// numbersText is a list of numbers as it is stored: null if there are none.
func numbersText(numbers []int) (string, error) {
	if len(numbers) == 0 {
		return "null", nil
	}
	text, err := json.Marshal(numbers)
	return string(text), err
}

// AddThread implements store.Threads.
func (s *Store) AddThread(ctx context.Context, x store.Thread) (store.Thread, error) {
	err := s.write(ctx, func(q session) (err error) {
		x, err = addThread(ctx, q, x)
		return err
	})
	return orNothing(x, err)
}

func addThread(ctx context.Context, q session, x store.Thread) (store.Thread, error) {
	numbers, err := numbersText(x.LastSectionParagraphNumbers)
	if err != nil {
		return store.Thread{}, err
	}
	x.ID, x.CreatedAt = newID(), made(x.CreatedAt)
	_, err = q.exec(ctx, `INSERT INTO threads (`+threadColumns+`) VALUES (`+listOf(10)+`)`,
		x.ID, x.ReviewID, x.Owner, x.Language, x.Spoken, x.ConversationSummary, x.SummaryUpToTurn, x.LastSectionMentionTurn, numbers, x.CreatedAt.UnixMicro())
	switch q.dialect.Classify(err) {
	case MissingReference:
		return store.Thread{}, noReview(x.ReviewID)
	case Duplicate:
		return store.Thread{}, &againError{task.Errorf(task.Conflict, "review %s has a thread without an owner", x.ReviewID)}
	default:
		return x, err
	}
}

// SharedThread implements store.Threads.
func (s *Store) SharedThread(ctx context.Context, reviewID, language string) (x store.Thread, err error) {
	err = s.write(ctx, func(q session) error {
		var found bool
		x, found, err = first(ctx, q, scanThread, `SELECT `+threadColumns+` FROM threads WHERE review = ? AND owner = ''`, reviewID)
		if err == nil && !found {
			x, err = addThread(ctx, q, store.Thread{ReviewID: reviewID, Language: language})
		}
		return err
	})
	return orNothing(x, err)
}

// Thread implements store.Threads.
func (s *Store) Thread(ctx context.Context, id string) (store.Thread, error) {
	return find(ctx, s, noThread(id), scanThread, `SELECT `+threadColumns+` FROM threads WHERE id = ?`, id)
}

func noThread(id string) error { return task.Errorf(task.NotFound, "there is no thread %q", id) }

// ListThreads implements store.Threads.
func (s *Store) ListThreads(ctx context.Context, reviewID string) ([]store.Thread, error) {
	return all(ctx, s, scanThread, `SELECT `+threadColumns+` FROM threads WHERE review = ? ORDER BY id`, reviewID)
}

// ThreadsOf implements store.Threads.
func (s *Store) ThreadsOf(ctx context.Context, reader, reviewID string, limit int) ([]store.ThreadEntry, error) {
	if err := requireName("reader of threads", reader); err != nil {
		return nil, err
	}
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	var where conditions
	where.add(`threads.owner IN ('', ?)`, reader)
	where.add(`(`+ownOrShared+` OR reviews.pull <> '')`, reader, assigneeMark.fold(reader))
	where.addText(`threads.review`, reviewID)
	query, args := limited(`SELECT threads.id, threads.review, threads.owner, threads.language, threads.spoken, '', threads.summary_up_to_turn,
		threads.last_section_turn, threads.last_section_numbers, threads.created_at, `+titleColumn+`, reviews.pull,
		(SELECT COUNT(*) FROM messages WHERE messages.thread = threads.id AND messages.role = 'assistant')
		FROM threads JOIN reviews ON reviews.id = threads.review`+where.text()+` ORDER BY threads.id DESC`, where.args, limit)
	return all(ctx, s, scanThreadEntry, query, args...)
}

func scanThreadEntry(r row) (x store.ThreadEntry, err error) {
	var pull string
	if x.Thread, err = scanThreadAnd(r, &x.Title, &pull, &x.Turns); err != nil || pull == "" {
		return x, err
	}
	x.Pull, err = task.ParseKey(pull)
	return x, err
}

// ThreadWith implements store.Threads.
func (s *Store) ThreadWith(ctx context.Context, reviewID, owner, origin string) (store.Thread, error) {
	missing := task.Errorf(task.NotFound, "no message of %q is about review %s", origin, reviewID)
	return find(ctx, s, missing, scanThread, `SELECT `+threadColumns+` FROM threads WHERE review = ? AND owner = ?
		AND EXISTS (SELECT 1 FROM messages WHERE messages.thread = threads.id AND messages.origin = ? AND messages.origin <> '')`, reviewID, owner, origin)
}

// lockThread returns a thread that nobody else changes until the transaction ends.
func lockThread(ctx context.Context, q session, id string) (store.Thread, error) {
	x, found, err := first(ctx, q, scanThread, `SELECT `+threadColumns+` FROM threads WHERE id = ? `+q.dialect.LockRows, id)
	if err == nil && !found {
		err = noThread(id)
	}
	return x, err
}

// AddSummary implements store.Threads.
func (s *Store) AddSummary(ctx context.Context, id string, after, upTo int, text string) error {
	if upTo <= after {
		return task.Errorf(task.Invalid, "a summary of turns %d to %d is of none", after+1, upTo)
	}
	return s.write(ctx, func(q session) error {
		x, err := lockThread(ctx, q, id)
		if err != nil {
			return err
		}
		if x.SummaryUpToTurn != after {
			return task.Errorf(task.Conflict, "thread %s is summarised up to turn %d, not %d", id, x.SummaryUpToTurn, after)
		}
		whole := text
		if x.ConversationSummary != "" {
			whole = x.ConversationSummary + "\n\n" + text
		}
		_, err = q.exec(ctx, `UPDATE threads SET conversation_summary = ?, summary_up_to_turn = ? WHERE id = ?`, whole, upTo, id)
		return err
	})
}
