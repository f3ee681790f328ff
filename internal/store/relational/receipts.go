package relational

import (
	"context"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	receiptEntryColumns = `id, task, generation, commit_hash, key, created_at`
	receiptColumns      = receiptEntryColumns + `, envelope`
)

// scanReceiptEntry scans a receipt, and its envelope if that is asked for too.
func scanReceiptEntry(r row, more ...any) (one store.Receipt, err error) {
	err = r.Scan(append([]any{&one.ID, &one.Task, &one.Generation, &one.Commit, &one.Key, micros{&one.CreatedAt}}, more...)...)
	return one, err
}

func scanReceipt(r row) (store.Receipt, error) {
	var envelope []byte
	one, err := scanReceiptEntry(r, &envelope)
	one.Envelope = envelope
	return one, err
}

// KeepReceipt implements store.Receipts.
func (s *Store) KeepReceipt(ctx context.Context, one store.Receipt) (store.Receipt, error) {
	if err := requireName("commit of a receipt", one.Commit); err != nil {
		return store.Receipt{}, err
	}
	if len(one.Envelope) == 0 {
		return store.Receipt{}, task.Errorf(task.Invalid, "the receipt is empty")
	}
	one.ID, one.CreatedAt = newID(), made(one.CreatedAt)
	err := s.write(ctx, func(q session) error {
		t, err := lockTask(ctx, q, one.Task)
		if err != nil {
			return err
		}
		if t.Generation != one.Generation {
			return staleError(one.Task, one.Generation, t.Generation)
		}
		kept, found, err := first(ctx, q, scanReceipt, `SELECT `+receiptColumns+` FROM receipts
			WHERE task = ? AND generation = ? AND commit_hash = ?`, one.Task, one.Generation, one.Commit)
		if err != nil {
			return err
		}
		if found {
			one = kept
			return nil
		}
		_, err = q.exec(ctx, `INSERT INTO receipts (`+receiptColumns+`) VALUES (`+listOf(7)+`)`,
			one.ID, one.Task, one.Generation, one.Commit, one.Key, one.CreatedAt.UnixMicro(), one.Envelope)
		return err
	})
	return orNothing(one, err)
}

// Receipt implements store.Receipts.
func (s *Store) Receipt(ctx context.Context, id string) (store.Receipt, error) {
	missing := task.Errorf(task.NotFound, "there is no receipt %q", id)
	if checkText(id) != nil {
		return store.Receipt{}, missing
	}
	return find(ctx, s, missing, scanReceipt, `SELECT `+receiptColumns+` FROM receipts WHERE id = ?`, id)
}

// ReceiptsOf implements store.Receipts.
func (s *Store) ReceiptsOf(ctx context.Context, id task.ID) ([]store.Receipt, error) {
	return all(ctx, s, func(r row) (store.Receipt, error) { return scanReceiptEntry(r) },
		`SELECT `+receiptEntryColumns+` FROM receipts WHERE task = ? ORDER BY id`, id)
}

// receiptKeyCounter counts the keys. Who has it locked is the only one to add a key.
const receiptKeyCounter = "receipt keys"

const receiptKeyColumns = `id, public, private, created_at`

func scanReceiptKey(r row) (key store.ReceiptKey, err error) {
	err = r.Scan(&key.ID, &key.Public, &key.Private, micros{&key.CreatedAt})
	key.Private = nonEmpty(key.Private)
	return key, err
}

// AddReceiptKey implements store.Receipts.
func (s *Store) AddReceiptKey(ctx context.Context, key store.ReceiptKey, replace bool) (store.ReceiptKey, error) {
	if err := requireName("id of a key", key.ID); err != nil {
		return store.ReceiptKey{}, err
	}
	if len(key.Public) == 0 || len(key.Private) == 0 {
		return store.ReceiptKey{}, task.Errorf(task.Invalid, "half of the key is missing")
	}
	key.CreatedAt = made(key.CreatedAt)
	err := s.write(ctx, func(q session) error {
		number, err := countOne(ctx, q, receiptKeyCounter, 1)
		if err != nil {
			return err
		}
		signs, found, err := first(ctx, q, scanReceiptKey, `SELECT `+receiptKeyColumns+` FROM receipt_keys ORDER BY number DESC LIMIT 1`)
		if err != nil {
			return err
		}
		if found && !replace {
			key = signs
			return nil
		}
		if _, err := q.exec(ctx, `UPDATE receipt_keys SET private = ?`, blob(nil)); err != nil {
			return err
		}
		_, err = q.exec(ctx, `INSERT INTO receipt_keys (`+receiptKeyColumns+`, number) VALUES (`+listOf(5)+`)`,
			key.ID, key.Public, key.Private, key.CreatedAt.UnixMicro(), number)
		if q.dialect.Classify(err) == Duplicate {
			return task.Errorf(task.Conflict, "the key is there already")
		}
		return err
	})
	return orNothing(key, err)
}

// ReceiptKeys implements store.Receipts.
func (s *Store) ReceiptKeys(ctx context.Context) ([]store.ReceiptKey, error) {
	return all(ctx, s, scanReceiptKey, `SELECT `+receiptKeyColumns+` FROM receipt_keys ORDER BY number DESC`)
}
