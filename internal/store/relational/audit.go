package relational

import (
	"context"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const auditColumns = `id, at, actor, action, subject, outcome`

func scanAudit(r row) (e store.AuditEntry, err error) {
	err = r.Scan(&e.ID, micros{&e.At}, &e.Actor, &e.Action, &e.Subject, &e.Outcome)
	return e, err
}

// AddAudit implements store.Audit.
func (s *Store) AddAudit(ctx context.Context, e store.AuditEntry) (store.AuditEntry, error) {
	e.ID, e.At = newID(), made(e.At)
	e.Actor, e.Subject = cleanText(e.Actor), cleanText(e.Subject)
	err := s.write(ctx, func(q session) error {
		_, err := q.exec(ctx, `INSERT INTO audit (`+auditColumns+`) VALUES (`+listOf(6)+`)`,
			e.ID, e.At.UnixMicro(), e.Actor, e.Action, e.Subject, e.Outcome)
		return err
	})
	return orNothing(e, err)
}

// EndAudit implements store.Audit.
func (s *Store) EndAudit(ctx context.Context, id, outcome string) error {
	return s.write(ctx, func(q session) error {
		changed, err := q.exec(ctx, `UPDATE audit SET outcome = ? WHERE id = ?`, outcome, id)
		if err == nil && changed == 0 {
			err = task.Errorf(task.NotFound, "there is no audit entry %q", id)
		}
		return err
	})
}

// ListAudit implements store.Audit.
func (s *Store) ListAudit(ctx context.Context, before string, limit int) ([]store.AuditEntry, error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	query, args := `SELECT `+auditColumns+` FROM audit`, []any{}
	if before != "" {
		query, args = query+` WHERE id < ?`, append(args, before)
	}
	query, args = limited(query+` ORDER BY id DESC`, args, limit)
	return all(ctx, s, scanAudit, query, args...)
}
