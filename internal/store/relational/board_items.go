package relational

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const boardItemColumns = `repository, number, kind, title, body, author, state, head, base, draft, created_at, updated_at`

func scanBoardItem(r row) (x store.BoardItem, err error) {
	var draft int64
	err = r.Scan(&x.Repository, &x.Number, &x.Kind, &x.Title, &x.Body, &x.Author, &x.State, &x.Head, &x.Base, &draft,
		micros{&x.CreatedAt}, micros{&x.UpdatedAt})
	x.Draft = draft != 0
	return x, err
}

// truth is a truth value as it is stored.
func truth(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// AddBoardItem implements store.BoardItems.
func (s *Store) AddBoardItem(ctx context.Context, item store.BoardItem) (x store.BoardItem, err error) {
	if item.Kind != task.Issue && item.Kind != task.Pull {
		return store.BoardItem{}, task.Errorf(task.Invalid, "unknown item kind %q; it is issue or pull", string(item.Kind))
	}
	err = s.write(ctx, func(q session) error {
		x, err = addBoardItem(ctx, q, item)
		return err
	})
	return orNothing(x, err)
}

func addBoardItem(ctx context.Context, q session, x store.BoardItem) (store.BoardItem, error) {
	_, exists, err := first(ctx, q, scanNumber, `SELECT 1 FROM board_repositories WHERE name = ?`, x.Repository)
	if err != nil {
		return x, err
	}
	if !exists {
		return x, noBoardRepository(x.Repository)
	}
	if x.Number, err = countOne(ctx, q, boardCounter(x.Repository), 1); err != nil {
		return x, err
	}
	x.State, x.CreatedAt = store.BoardOpen, made(x.CreatedAt)
	x.UpdatedAt = x.CreatedAt
	_, err = q.exec(ctx, `INSERT INTO board_items (id, `+boardItemColumns+`) VALUES (`+listOf(13)+`)`,
		newID(), x.Repository, x.Number, x.Kind, x.Title, x.Body, x.Author, x.State, x.Head, x.Base, truth(x.Draft),
		x.CreatedAt.UnixMicro(), x.UpdatedAt.UnixMicro())
	if err != nil {
		return x, err
	}
	notifyBoard(q, x)
	labels, assignees := x.Labels, x.Assignees
	x.Labels, x.Assignees = nil, nil
	for _, label := range labels {
		if _, err := setMark(ctx, q, &x, labelMark, label, true, x.Author, x.CreatedAt); err != nil {
			return x, err
		}
	}
	for _, login := range assignees {
		if _, err := setMark(ctx, q, &x, assigneeMark, login, true, x.Author, x.CreatedAt); err != nil {
			return x, err
		}
	}
	return x, nil
}

// BoardItem implements store.BoardItems.
func (s *Store) BoardItem(ctx context.Context, repository string, number int64) (x store.BoardItem, err error) {
	err = s.snapshot(ctx, func(q session) error {
		x, err = boardItem(ctx, q, repository, number, ``)
		return err
	})
	return orNothing(x, err)
}

// boardItem reads an item with its marks, and locks it if asked to.
func boardItem(ctx context.Context, q session, repository string, number int64, lock string) (store.BoardItem, error) {
	x, found, err := first(ctx, q, scanBoardItem, `SELECT `+boardItemColumns+` FROM board_items
		WHERE repository = ? AND number = ? `+lock, repository, number)
	if err != nil {
		return x, err
	}
	if !found {
		return x, noBoardItem(repository, number)
	}
	items := []store.BoardItem{x}
	err = readMarks(ctx, q, items, conditions{
		parts: []string{`board_items.repository = ?`, `board_items.number = ?`}, args: []any{repository, number},
	})
	return items[0], err
}

func noBoardItem(repository string, number int64) error {
	return task.Errorf(task.NotFound, "there is no item %d in repository %q", number, repository)
}

// ListBoardItems implements store.BoardItems.
func (s *Store) ListBoardItems(ctx context.Context, filter store.BoardFilter) (items []store.BoardItem, err error) {
	where := boardConditions(filter)
	order := ` ORDER BY id`
	if filter.Repository != "" {
		order = ` ORDER BY number`
	}
	err = s.snapshot(ctx, func(q session) error {
		items, err = list(ctx, q, scanBoardItem, `SELECT `+boardItemColumns+` FROM board_items`+where.text()+order, where.args...)
		if err != nil {
			return err
		}
		return readMarks(ctx, q, items, where)
	})
	return orNothing(items, err)
}

func boardConditions(filter store.BoardFilter) conditions {
	var where conditions
	where.addText(`board_items.repository`, filter.Repository)
	where.addText(`board_items.kind`, string(filter.Kind))
	where.addText(`board_items.state`, string(filter.State))
	where.addText(`board_items.head`, filter.Head)
	if !filter.UpdatedSince.IsZero() {
		where.add(`board_items.updated_at >= ?`, filter.UpdatedSince.UnixMicro())
	}
	where.addMark(labelMark, filter.Label)
	where.addMark(assigneeMark, filter.Assignee)
	return where
}

// EditBoardItem implements store.BoardItems.
func (s *Store) EditBoardItem(ctx context.Context, repository string, number int64, edit store.BoardEdit, actor string) (x store.BoardItem, err error) {
	err = s.write(ctx, func(q session) error {
		if x, err = boardItem(ctx, q, repository, number, q.dialect.LockRows); err != nil {
			return err
		}
		return editBoardItem(ctx, q, &x, edit, actor)
	})
	return orNothing(x, err)
}

func editBoardItem(ctx context.Context, q session, x *store.BoardItem, edit store.BoardEdit, actor string) error {
	var entries []store.BoardEvent
	if edit.Title != nil && *edit.Title != x.Title {
		x.Title = *edit.Title
		entries = append(entries, store.BoardEvent{Kind: store.BoardEdited, Subject: "title"})
	}
	if edit.Body != nil && *edit.Body != x.Body {
		x.Body = *edit.Body
		entries = append(entries, store.BoardEvent{Kind: store.BoardEdited, Subject: "body"})
	}
	if edit.Draft != nil && *edit.Draft != x.Draft {
		x.Draft = *edit.Draft
		entries = append(entries, store.BoardEvent{Kind: store.BoardEdited, Subject: "draft"})
	}
	if edit.State != nil && *edit.State != x.State {
		if err := checkBoardState(*x, *edit.State); err != nil {
			return err
		}
		x.State = *edit.State
		entries = append(entries, store.BoardEvent{Kind: store.BoardStateSet, Subject: string(x.State)})
	}
	if len(entries) == 0 {
		return nil
	}
	at := now()
	if err := touchBoardItem(ctx, q, x, at); err != nil {
		return err
	}
	_, err := q.exec(ctx, `UPDATE board_items SET title = ?, body = ?, draft = ?, state = ? WHERE repository = ? AND number = ?`,
		x.Title, x.Body, truth(x.Draft), x.State, x.Repository, x.Number)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		entry.Actor, entry.At = actor, at
		if err := addTimeline(ctx, q, *x, entry); err != nil {
			return err
		}
	}
	return nil
}

func checkBoardState(x store.BoardItem, state store.BoardState) error {
	switch {
	case state != store.BoardOpen && state != store.BoardClosed && state != store.BoardMerged:
		return task.Errorf(task.Invalid, "unknown state %q of an item; it is open, closed or merged", string(state))
	case state == store.BoardMerged && x.Kind != task.Pull:
		return task.Errorf(task.Invalid, "item %d in repository %q is an issue and cannot be merged", x.Number, x.Repository)
	case x.State == store.BoardMerged:
		return task.Errorf(task.Conflict, "pull request %d in repository %q is merged and stays so", x.Number, x.Repository)
	default:
		return nil
	}
}

// touchBoardItem records that something happened to an item. The moment is always
// later than the one before, so that whoever looks for changes sees each.
func touchBoardItem(ctx context.Context, q session, x *store.BoardItem, at time.Time) error {
	x.UpdatedAt = later(at, x.UpdatedAt)
	notifyBoard(q, *x)
	_, err := q.exec(ctx, `UPDATE board_items SET updated_at = ? WHERE repository = ? AND number = ?`,
		x.UpdatedAt.UnixMicro(), x.Repository, x.Number)
	return err
}

func notifyBoard(q session, x store.BoardItem) {
	key := task.Key{Forge: task.Board, Repository: x.Repository, Kind: x.Kind, Number: x.Number}
	q.notify(store.BoardChanged, key.String())
}
