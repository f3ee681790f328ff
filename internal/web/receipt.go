package web

import (
	"context"
	"net/http"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/receipt"
	"github.com/toryo-dev/toryo/internal/store"
)

// receiptStore is what the page of a receipt needs of the database.
type receiptStore interface {
	Receipt(ctx context.Context, id string) (store.Receipt, error)
}

// registerReceipts shows receipts to those who may see the tasks that they are of.
func (p *Pages) registerReceipts(mux *http.ServeMux) {
	mux.HandleFunc("GET /receipts/{id}", p.page(access.Viewer, p.showReceipt))
	mux.HandleFunc("GET /receipts/{id}/envelope.json", p.signedIn(access.Viewer, p.sendReceipt))
}

// receiptView is a receipt with what it states.
type receiptView struct {
	store.Receipt
	receipt.Extension
	result string
}

// badge is the colour of the result.
func (r receiptView) badge() string {
	switch r.result {
	case receipt.Passed:
		return "ok"
	case receipt.Failed:
		return "bad"
	default:
		return "paused"
	}
}

func (p *Pages) showReceipt(r *http.Request, v visit) (templ.Component, error) {
	found, err := p.Store.Receipt(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	statement, err := receipt.Read(found.Envelope)
	if err != nil {
		return nil, err
	}
	return receiptPage(v, receiptView{found, statement.Predicate.Toryo, statement.Predicate.Result}), nil
}

// sendReceipt sends the envelope as a file.
func (p *Pages) sendReceipt(w http.ResponseWriter, r *http.Request, v visit) {
	found, err := p.Store.Receipt(r.Context(), r.PathValue("id"))
	if err != nil {
		p.fail(w, r, v, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", `attachment; filename="receipt-`+found.Commit+`.json"`)
	if _, err := w.Write(found.Envelope); err != nil {
		p.Log.DebugContext(r.Context(), "client disconnected", "error", err)
	}
}
