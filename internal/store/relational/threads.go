package relational

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const threadColumns = `id, review, owner, conversation_summary, summary_up_to_turn, last_section_turn, last_section_numbers, created_at`

func scanThread(r row) (x store.Thread, err error) {
	var numbers string
	err = r.Scan(&x.ID, &x.ReviewID, &x.Owner, &x.ConversationSummary, &x.SummaryUpToTurn, &x.LastSectionMentionTurn, &numbers, micros{&x.CreatedAt})
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
	numbers, err := numbersText(x.LastSectionParagraphNumbers)
	if err != nil {
		return store.Thread{}, err
	}
	x.ID, x.CreatedAt = newID(), made(x.CreatedAt)
	err = s.write(ctx, func(q session) error {
		_, err := q.exec(ctx, `INSERT INTO threads (`+threadColumns+`) VALUES (`+listOf(8)+`)`,
			x.ID, x.ReviewID, x.Owner, x.ConversationSummary, x.SummaryUpToTurn, x.LastSectionMentionTurn, numbers, x.CreatedAt.UnixMicro())
		if q.dialect.Classify(err) == MissingReference {
			return noReview(x.ReviewID)
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

// UpdateThread implements store.Threads.
func (s *Store) UpdateThread(ctx context.Context, x store.Thread) error {
	numbers, err := numbersText(x.LastSectionParagraphNumbers)
	if err != nil {
		return err
	}
	return s.write(ctx, func(q session) error {
		updated, err := q.exec(ctx, `UPDATE threads SET conversation_summary = ?, summary_up_to_turn = ?,
			last_section_turn = ?, last_section_numbers = ? WHERE id = ?`,
			x.ConversationSummary, x.SummaryUpToTurn, x.LastSectionMentionTurn, numbers, x.ID)
		if err == nil && updated == 0 {
			err = noThread(x.ID)
		}
		return err
	})
}

// AddMessage implements store.Threads.
func (s *Store) AddMessage(ctx context.Context, x store.Message) (store.Message, error) {
	if x.Role != store.UserMessage && x.Role != store.AssistantMessage {
		return store.Message{}, task.Errorf(task.Invalid, "unknown role %q of a message; it is user or assistant", string(x.Role))
	}
	if x.Turn < 1 {
		return store.Message{}, task.Errorf(task.Invalid, "turn %d of a message is not positive", x.Turn)
	}
	x.ID, x.CreatedAt = newID(), made(x.CreatedAt)
	err := s.write(ctx, func(q session) error {
		_, err := q.exec(ctx, `INSERT INTO messages (id, thread, turn, role, content, created_at) VALUES (`+listOf(6)+`)`,
			x.ID, x.ThreadID, x.Turn, x.Role, x.Content, x.CreatedAt.UnixMicro())
		switch q.dialect.Classify(err) {
		case MissingReference:
			return noThread(x.ThreadID)
		case Duplicate:
			return task.Errorf(task.Conflict, "turn %d of thread %s has a message of the %s already", x.Turn, x.ThreadID, x.Role)
		default:
			return err
		}
	})
	return orNothing(x, err)
}

// Messages implements store.Threads.
func (s *Store) Messages(ctx context.Context, threadID string) (all []store.Message, err error) {
	err = s.read(ctx, func(q session) error {
		all, err = list(ctx, q, func(r row) (x store.Message, err error) {
			err = r.Scan(&x.ID, &x.ThreadID, &x.Turn, &x.Role, &x.Content, micros{&x.CreatedAt})
			return x, err
		}, `SELECT id, thread, turn, role, content, created_at FROM messages
			WHERE thread = ? ORDER BY turn, CASE role WHEN 'user' THEN 0 ELSE 1 END`, threadID)
		return err
	})
	return all, err
}
