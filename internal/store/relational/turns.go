package relational

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const messageColumns = `id, thread, turn, role, content, author, origin, place, state, cause, attempts, held_until, citations, created_at`

// messageOrder puts what has no answer before what has one, and a question before
// its answer.
const messageOrder = ` ORDER BY turn, CASE WHEN state = 'unanswered' THEN 0 WHEN role = 'user' THEN 1 ELSE 2 END, id`

func scanMessage(r row) (x store.Message, err error) {
	var held int64
	var citations string
	err = r.Scan(&x.ID, &x.ThreadID, &x.Turn, &x.Role, &x.Content, &x.Author, &x.Origin, &x.Place, &x.State, &x.Cause, &x.Attempts,
		&held, &citations, micros{&x.CreatedAt})
	x.HeldUntil = heldUntil(held)
	x.Citations = rawJSON(citations)
	return x, err
}

// Messages implements store.Turns.
func (s *Store) Messages(ctx context.Context, threadID string) ([]store.Message, error) {
	return all(ctx, s, scanMessage, `SELECT `+messageColumns+` FROM messages WHERE thread = ?`+messageOrder, threadID)
}

// MessageOf implements store.Turns.
func (s *Store) MessageOf(ctx context.Context, pull task.Key, origin string) (store.Message, error) {
	missing := task.Errorf(task.NotFound, "no message came from comment %q of %s", origin, pull)
	return find(ctx, s, missing, scanMessage, `SELECT `+messageColumns+` FROM messages WHERE origin = ? AND thread IN (
		SELECT threads.id FROM threads JOIN reviews ON reviews.id = threads.review WHERE reviews.pull = ?)`, origin, pull.String())
}

// BeginTurn implements store.Turns.
func (s *Store) BeginTurn(ctx context.Context, ask store.Ask) (turn store.Begun, begun bool, err error) {
	if err := checkAsk(ask); err != nil {
		return store.Begun{}, false, err
	}
	err = s.write(ctx, func(q session) error {
		turn, begun, err = beginTurn(ctx, q, ask)
		if err == nil && begun {
			_, err = q.exec(ctx, `UPDATE messages SET held_by = ? WHERE id = ?`, s.holder(), turn.Message.ID)
		}
		return err
	})
	if err != nil || !begun {
		return store.Begun{}, false, err
	}
	return turn, true, nil
}

func checkAsk(ask store.Ask) error {
	if err := requireName("claim of a turn", ask.Claim); err != nil {
		return err
	}
	return checkName("origin of a message", ask.Origin)
}

func beginTurn(ctx context.Context, q session, ask store.Ask) (turn store.Begun, begun bool, err error) {
	if turn.Thread, err = lockThread(ctx, q, ask.ThreadID); err != nil {
		return turn, false, err
	}
	said, err := list(ctx, q, scanMessage, `SELECT `+messageColumns+` FROM messages WHERE thread = ?`+messageOrder, ask.ThreadID)
	if err != nil {
		return turn, false, err
	}
	for i, message := range said {
		switch {
		case message.State == store.Answered:
			turn.History = append(turn.History, message)
		case message.State == store.Answering && message.HeldUntil.After(ask.Now):
			return turn, false, nil
		case message.State == store.Answering: // whoever answered it is gone
			if err := setState(ctx, q, message.ID, store.Unanswered, "interrupted"); err != nil {
				return turn, false, err
			}
			said[i].State = store.Unanswered
		}
	}
	next := len(turn.History)/2 + 1
	earlier, found, err := earlierOf(ask, said)
	if err != nil {
		return turn, false, err
	}
	if found {
		turn.Message, err = askAgain(ctx, q, ask, earlier, next)
	} else {
		turn.Message, err = addMessage(ctx, q, store.Message{
			ThreadID: ask.ThreadID, Turn: next, Role: store.UserMessage, Content: ask.Content, Author: ask.Author, Origin: ask.Origin,
			Place: ask.Place, State: store.Answering, Attempts: 1, HeldUntil: ask.Until, CreatedAt: ask.Now,
		}, ask.Claim)
	}
	return turn, err == nil, err
}

func setState(ctx context.Context, q session, id string, state store.MessageState, cause string) error {
	_, err := q.exec(ctx, `UPDATE messages SET state = ?, cause = ?, claim = '', held_until = 0 WHERE id = ?`, state, cleanText(cause), id)
	return err
}

// earlierOf finds the message that is asked again.
func earlierOf(ask store.Ask, said []store.Message) (earlier store.Message, found bool, err error) {
	var last *store.Message
	for _, message := range said {
		same := message.ID == ask.Repeat && ask.Repeat != "" || message.Origin == ask.Origin && ask.Origin != ""
		switch {
		case same && message.State == store.Answered:
			return earlier, false, task.Errorf(task.Conflict, "message %s has an answer", message.ID)
		case same:
			return message, true, nil
		case message.State == store.Unanswered:
			last = &message
		}
	}
	if ask.Repeat != "" {
		return earlier, false, task.Errorf(task.NotFound, "there is no message %q in thread %s", ask.Repeat, ask.ThreadID)
	}
	if last != nil && ask.Place == "" && last.Place == "" && last.Content == ask.Content {
		return *last, true, nil
	}
	return earlier, false, nil
}

func askAgain(ctx context.Context, q session, ask store.Ask, earlier store.Message, turn int) (store.Message, error) {
	if ask.Origin != "" && earlier.Place == "" { // by which it is known from now on
		earlier.Origin = ask.Origin
	}
	_, err := q.exec(ctx, `UPDATE messages SET state = ?, turn = ?, origin = ?, cause = '', attempts = attempts + 1, claim = ?, held_until = ? WHERE id = ?`,
		store.Answering, turn, earlier.Origin, ask.Claim, ask.Until.UnixMicro(), earlier.ID)
	earlier.State, earlier.Turn, earlier.Cause, earlier.HeldUntil = store.Answering, turn, "", moment(ask.Until)
	earlier.Attempts++
	return earlier, err
}

func addMessage(ctx context.Context, q session, x store.Message, claim string) (store.Message, error) {
	x.ID, x.CreatedAt = newID(), made(x.CreatedAt)
	if !x.HeldUntil.IsZero() {
		x.HeldUntil = moment(x.HeldUntil)
	}
	_, err := q.exec(ctx, `INSERT INTO messages (`+messageColumns+`, claim) VALUES (`+listOf(15)+`)`,
		x.ID, x.ThreadID, x.Turn, x.Role, x.Content, x.Author, x.Origin, x.Place, x.State, x.Cause, x.Attempts,
		heldMicros(x.HeldUntil), string(x.Citations), x.CreatedAt.UnixMicro(), claim)
	return x, err
}

// held returns the message that the claim is answering. The thread comes first, so
// that everyone locks in one order.
func held(ctx context.Context, q session, messageID, claim string) (store.Message, error) {
	x, found, err := first(ctx, q, scanMessage, `SELECT `+messageColumns+` FROM messages WHERE id = ?`, messageID)
	if err != nil {
		return x, err
	}
	if !found {
		return x, noMessage(messageID)
	}
	if _, err := lockThread(ctx, q, x.ThreadID); err != nil {
		return x, err
	}
	x, found, err = first(ctx, q, scanMessage, `SELECT `+messageColumns+` FROM messages WHERE id = ? AND state = ? AND claim = ?`,
		messageID, store.Answering, claim)
	if err == nil && !found {
		err = task.Errorf(task.LeaseLost, "message %s is answered by somebody else, or no longer", messageID)
	}
	return x, err
}

func noMessage(id string) error { return task.Errorf(task.NotFound, "there is no message %q", id) }

// HoldTurn implements store.Turns.
func (s *Store) HoldTurn(ctx context.Context, messageID, claim string, until time.Time) error {
	return s.write(ctx, func(q session) error {
		if _, err := held(ctx, q, messageID, claim); err != nil {
			return err
		}
		_, err := q.exec(ctx, `UPDATE messages SET held_until = ? WHERE id = ?`, until.UnixMicro(), messageID)
		return err
	})
}

// EndTurn implements store.Turns.
func (s *Store) EndTurn(ctx context.Context, ended store.Ended) (answer store.Message, err error) {
	numbers, err := numbersText(ended.LastSectionParagraphNumbers)
	if err != nil {
		return store.Message{}, err
	}
	for what, data := range map[string]json.RawMessage{"list of citations": ended.Citations, "request to the model": ended.Sent} {
		if err := checkJSON(what, data); err != nil {
			return store.Message{}, err
		}
	}
	err = s.write(ctx, func(q session) error {
		asked, err := held(ctx, q, ended.MessageID, ended.Claim)
		if err != nil {
			return err
		}
		if err := setState(ctx, q, asked.ID, store.Answered, ""); err != nil {
			return err
		}
		answer, err = addMessage(ctx, q, store.Message{
			ThreadID: asked.ThreadID, Turn: asked.Turn, Role: store.AssistantMessage, Content: ended.Content,
			State: store.Answered, Cause: ended.Note, Citations: rawJSON(string(ended.Citations)),
		}, "")
		if err != nil {
			return err
		}
		if len(ended.Sent) > 0 {
			if _, err := q.exec(ctx, `INSERT INTO sent (answer, request) VALUES (?, ?)`, answer.ID, string(ended.Sent)); err != nil {
				return err
			}
		}
		_, err = q.exec(ctx, `UPDATE threads SET last_section_turn = ?, last_section_numbers = ?, spoken = CASE WHEN ? = '' THEN spoken ELSE ? END WHERE id = ?`,
			ended.LastSectionMentionTurn, numbers, ended.Spoken, ended.Spoken, asked.ThreadID)
		if err == nil {
			_, err = putActions(ctx, q, ended.Writes, nil)
		}
		return err
	})
	return orNothing(answer, err)
}

// Sent implements store.Turns.
func (s *Store) Sent(ctx context.Context, answerID string) (json.RawMessage, error) {
	text, err := find(ctx, s, task.Errorf(task.NotFound, "what the model was sent for this answer was not kept"), scanText,
		`SELECT request FROM sent WHERE answer = ?`, answerID)
	return rawJSON(text), err
}

// FailTurn implements store.Turns.
func (s *Store) FailTurn(ctx context.Context, messageID, claim, cause string) error {
	return s.write(ctx, func(q session) error {
		if _, err := held(ctx, q, messageID, claim); err != nil {
			return err
		}
		return setState(ctx, q, messageID, store.Unanswered, cause)
	})
}
