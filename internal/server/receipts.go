package server

import (
	"bytes"
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// receiptType is what in-toto calls a test result in a DSSE envelope.
const receiptType = "application/vnd.in-toto.test-result+dsse"

type (
	receiptInput struct {
		ID string `path:"id"`
	}
	receiptOutput struct {
		ContentType string `header:"Content-Type"`
		Body        []byte
	}
	receiptsOutput struct{ Body wire.Receipts }
)

// receiptStore is what showing receipts needs of the database.
type receiptStore interface {
	Receipt(ctx context.Context, id string) (store.Receipt, error)
	ReceiptsOf(ctx context.Context, id task.ID) ([]store.Receipt, error)
	ReceiptKeys(ctx context.Context) ([]store.ReceiptKey, error)
}

// registerReceipts serves receipts to those who may see the tasks that they are of, and
// the keys to everybody.
func (s *Server) registerReceipts(mux *http.ServeMux) {
	register(s, access.Viewer, huma.Operation{
		OperationID: "get-receipt", Method: http.MethodGet, Path: "/v1/receipts/{id}", Summary: "A receipt: an in-toto statement in a DSSE envelope",
		Errors: []int{http.StatusNotFound},
	}, s.getReceipt)
	register(s, access.Viewer, huma.Operation{
		OperationID: "list-receipts", Method: http.MethodGet, Path: "/v1/tasks/{id}/receipts", Summary: "The receipts of a task, oldest first",
		Errors: []int{http.StatusNotFound},
	}, s.listReceipts)
	mux.HandleFunc("GET "+wire.ReceiptKeysPath, s.receiptKeys)
}

func (s *Server) getReceipt(ctx context.Context, input *receiptInput) (*receiptOutput, error) {
	found, err := s.store.Receipt(ctx, input.ID)
	return &receiptOutput{receiptType, found.Envelope}, err
}

func (s *Server) listReceipts(ctx context.Context, input *taskInput) (*receiptsOutput, error) {
	id := task.ID(input.ID)
	if _, err := s.store.Task(ctx, id); err != nil {
		return nil, err
	}
	found, err := s.store.ReceiptsOf(ctx, id)
	if err != nil {
		return nil, err
	}
	return &receiptsOutput{ReceiptsOf(found)}, nil
}

// ReceiptsOf are receipts as clients see them.
func ReceiptsOf(found []store.Receipt) wire.Receipts {
	listed := wire.Receipts{Receipts: make([]wire.ReceiptEntry, 0, len(found))}
	for _, one := range found {
		listed.Receipts = append(listed.Receipts, wire.ReceiptEntry{
			ID: one.ID, Commit: one.Commit, Generation: one.Generation, Key: one.Key, CreatedAt: one.CreatedAt,
		})
	}
	return listed
}

// receiptKeys answers with the public keys, the one that signs first.
func (s *Server) receiptKeys(w http.ResponseWriter, r *http.Request) {
	keys, err := s.store.ReceiptKeys(r.Context())
	if err == nil && len(keys) == 0 {
		err = task.Errorf(task.NotFound, "this server has no key for receipts")
	}
	if err != nil {
		s.writeProblem(w, r, err)
		return
	}
	var all bytes.Buffer
	for _, key := range keys {
		all.Write(key.Public)
	}
	w.Header().Set("Content-Type", "application/x-pem-file")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if _, err := w.Write(all.Bytes()); err != nil {
		s.log.DebugContext(r.Context(), "client disconnected", "error", err)
	}
}
