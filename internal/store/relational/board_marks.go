package relational

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
)

// markKind is what a mark on a board item is.
type markKind string

const (
	labelMark    markKind = "label"
	assigneeMark markKind = "assignee"
)

// fold is what decides whether two names are one: labels are as they are
// written, logins are compared as task.SameLogin does. Databases hold logins in upper
// case from the first version on, so that is the spelling here.
func (k markKind) fold(name string) string {
	if k == labelMark {
		return name
	}
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - ('a' - 'A')
		}
		return r
	}, name)
}

// event is the timeline entry for putting a mark on or taking it off.
func (k markKind) event(on bool) store.BoardEventKind {
	switch {
	case k == labelMark && on:
		return store.BoardLabeled
	case k == labelMark:
		return store.BoardUnlabeled
	case on:
		return store.BoardAssigned
	default:
		return store.BoardUnassigned
	}
}

// marks is where an item keeps its marks of the kind.
func (k markKind) marks(x *store.BoardItem) *[]string {
	if k == labelMark {
		return &x.Labels
	}
	return &x.Assignees
}

// addMark asks for items that have the mark, unless its name is empty.
func (c *conditions) addMark(kind markKind, name string) {
	if name != "" {
		c.add(`EXISTS (SELECT 1 FROM board_marks WHERE board_marks.repository = board_items.repository
			AND board_marks.number = board_items.number AND board_marks.kind = ? AND board_marks.folded = ?)`, kind, kind.fold(name))
	}
}

type mark struct {
	repository string
	number     int64
	kind       markKind
	name       string
}

type itemAddress struct {
	repository string
	number     int64
}

// readMarks fills in the labels and assignees of items that the conditions found.
func readMarks(ctx context.Context, q session, items []store.BoardItem, where conditions) error {
	marks, err := list(ctx, q, func(r row) (m mark, err error) {
		err = r.Scan(&m.repository, &m.number, &m.kind, &m.name)
		return m, err
	}, `SELECT marked.repository, marked.number, marked.kind, marked.name
		FROM board_marks marked JOIN board_items
			ON marked.repository = board_items.repository AND marked.number = board_items.number`+where.text()+`
		ORDER BY marked.place`, where.args...)
	if err != nil {
		return err
	}
	at := make(map[itemAddress]*store.BoardItem, len(items))
	for i := range items {
		at[itemAddress{items[i].Repository, items[i].Number}] = &items[i]
	}
	for _, m := range marks {
		if x := at[itemAddress{m.repository, m.number}]; x != nil {
			names := m.kind.marks(x)
			*names = append(*names, m.name)
		}
	}
	return nil
}

// SetBoardLabel implements store.BoardItems.
func (s *Store) SetBoardLabel(ctx context.Context, repository string, number int64, label string, on bool, actor string) error {
	return s.changeMark(ctx, repository, number, labelMark, label, on, actor)
}

// SetBoardAssignee implements store.BoardItems.
func (s *Store) SetBoardAssignee(ctx context.Context, repository string, number int64, login string, on bool, actor string) error {
	return s.changeMark(ctx, repository, number, assigneeMark, login, on, actor)
}

func (s *Store) changeMark(ctx context.Context, repository string, number int64, kind markKind, name string, on bool, actor string) error {
	return s.write(ctx, func(q session) error {
		x, err := boardItem(ctx, q, repository, number, q.dialect.LockRows)
		if err != nil {
			return err
		}
		at := now()
		changed, err := setMark(ctx, q, &x, kind, name, on, actor, at)
		if err != nil || !changed {
			return err
		}
		return touchBoardItem(ctx, q, &x, at)
	})
}

// setMark puts a mark on an item or takes it off, and reports whether that
// changed anything. The item is locked or new.
func setMark(ctx context.Context, q session, x *store.BoardItem, kind markKind, name string, on bool, actor string, at time.Time) (bool, error) {
	if err := requireName(string(kind), name); err != nil {
		return false, err
	}
	marks := kind.marks(x)
	folded := kind.fold(name)
	is := slices.IndexFunc(*marks, func(have string) bool { return kind.fold(have) == folded })
	if on == (is >= 0) {
		return false, nil
	}
	var err error
	if on {
		_, err = q.exec(ctx, `INSERT INTO board_marks (repository, number, kind, folded, name, place)
			VALUES (?, ?, ?, ?, ?, (SELECT COALESCE(MAX(place), 0) + 1 FROM board_marks WHERE repository = ? AND number = ?))`,
			x.Repository, x.Number, kind, folded, name, x.Repository, x.Number)
		*marks = append(*marks, name)
	} else {
		_, err = q.exec(ctx, `DELETE FROM board_marks WHERE repository = ? AND number = ? AND kind = ? AND folded = ?`,
			x.Repository, x.Number, kind, folded)
		*marks = slices.Delete(*marks, is, is+1)
	}
	if err != nil {
		return false, err
	}
	return true, addTimeline(ctx, q, *x, store.BoardEvent{Actor: actor, Kind: kind.event(on), Subject: name, At: at})
}

// addTimeline adds an entry to the timeline of an item, which is locked or new.
func addTimeline(ctx context.Context, q session, x store.BoardItem, entry store.BoardEvent) error {
	_, err := q.exec(ctx, `INSERT INTO board_timeline (repository, number, place, actor, kind, subject, at)
		VALUES (?, ?, (SELECT COALESCE(MAX(place), 0) + 1 FROM board_timeline WHERE repository = ? AND number = ?), ?, ?, ?, ?)`,
		x.Repository, x.Number, x.Repository, x.Number, entry.Actor, entry.Kind, entry.Subject, entry.At.UnixMicro())
	return err
}

// BoardTimeline implements store.BoardItems.
func (s *Store) BoardTimeline(ctx context.Context, repository string, number int64) (entries []store.BoardEvent, err error) {
	err = s.snapshot(ctx, func(q session) error {
		if err := requireBoardItem(ctx, q, repository, number); err != nil {
			return err
		}
		entries, err = list(ctx, q, func(r row) (e store.BoardEvent, err error) {
			err = r.Scan(&e.Actor, &e.Kind, &e.Subject, micros{&e.At})
			return e, err
		}, `SELECT actor, kind, subject, at FROM board_timeline WHERE repository = ? AND number = ? ORDER BY place`, repository, number)
		return err
	})
	return orNothing(entries, err)
}

func requireBoardItem(ctx context.Context, q session, repository string, number int64) error {
	_, found, err := first(ctx, q, scanNumber, `SELECT 1 FROM board_items WHERE repository = ? AND number = ?`, repository, number)
	if err == nil && !found {
		err = noBoardItem(repository, number)
	}
	return err
}
