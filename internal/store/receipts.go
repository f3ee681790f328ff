package store

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// Receipt is what a server signed about a commit that a run has published. See package
// receipt.
type Receipt struct {
	ID         string
	Task       task.ID
	Generation int64
	Commit     string // that was published
	Key        string // id of the key that signed it
	Envelope   []byte
	CreatedAt  time.Time
}

// ReceiptKey is a key that signs receipts, or did.
type ReceiptKey struct {
	ID        string
	Public    []byte
	Private   []byte // empty for a key that signs no more
	CreatedAt time.Time
}

// Receipts keeps receipts and the keys that sign them. Neither is ever changed or
// removed, but for the private part of a key that was replaced.
type Receipts interface {
	// KeepReceipt keeps a receipt and returns it with its id. A run has one receipt for
	// each commit: if there is one, it stays as it is and is returned. It fails with
	// StaleGeneration if the task is in another generation.
	KeepReceipt(ctx context.Context, r Receipt) (Receipt, error)
	// Receipt returns one receipt.
	Receipt(ctx context.Context, id string) (Receipt, error)
	// ReceiptsOf returns the receipts of a task without their envelopes, oldest first.
	ReceiptsOf(ctx context.Context, id task.ID) ([]Receipt, error)

	// AddReceiptKey keeps a key, which signs from then on, and returns the one that
	// does. If there is one that signs, it stays and is returned, unless it is to be
	// replaced: then its private part is forgotten.
	AddReceiptKey(ctx context.Context, key ReceiptKey, replace bool) (ReceiptKey, error)
	// ReceiptKeys returns all keys, newest first: the first is the one that signs.
	ReceiptKeys(ctx context.Context) ([]ReceiptKey, error)
}
