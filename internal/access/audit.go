package access

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// AuditStore is what an auditor needs of the database.
type AuditStore interface {
	AddAudit(ctx context.Context, e store.AuditEntry) (store.AuditEntry, error)
	EndAudit(ctx context.Context, id, outcome string) error
}

// Auditor notes who did what.
type Auditor struct {
	Store AuditStore
	Now   func() time.Time
	Log   *slog.Logger
}

// OutcomeDone is the outcome of what succeeded.
const OutcomeDone = "done"

// Do does something that is in the audit log before it is done: what cannot be
// noted is not done. How it ended is added. The error is that of the action.
func (a Auditor) Do(ctx context.Context, actor, action, subject string, do func() error) error {
	entry, err := a.Store.AddAudit(ctx, store.AuditEntry{At: a.Now(), Actor: noted(actor), Action: noted(action), Subject: noted(subject)})
	if err != nil {
		return err
	}
	err = do()
	outcome := OutcomeDone
	if err != nil {
		outcome = string(task.CodeOf(err))
	}
	// The action is done, whether or not the caller has gone away meanwhile.
	if failed := a.Store.EndAudit(context.WithoutCancel(ctx), entry.ID, outcome); failed != nil {
		a.Log.ErrorContext(ctx, "failed to record the result of an action", "action", action, "outcome", outcome, "error", failed)
	}
	return err
}

// maxNoted is how many bytes of who, what and on what an entry has.
const maxNoted = 500

// noted is a text as an entry has it.
func noted(text string) string {
	if len(text) <= maxNoted {
		return text
	}
	return strings.ToValidUTF8(text[:maxNoted], "") + "…"
}
