package storetest

import (
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var receiptChecks = []check{
	{"receipts come back as they were kept", keepReceipts},
	{"a receipt is not overwritten", keepReceiptsOnce},
	{"receipts are kept for the run that is", keepReceiptsOfRuns},
	{"the newest key signs, and older ones are known", receiptKeys},
	{"of many servers that start together, one makes the key", receiptKeyTogether},
}

func receiptKeyOf(id string) store.ReceiptKey {
	return store.ReceiptKey{ID: id, Public: []byte("public " + id), Private: []byte{0, 1, 0xff}}
}

func receiptFor(x task.Task, commit string) store.Receipt {
	return store.Receipt{Task: x.ID, Generation: x.Generation, Commit: commit, Key: "k1", Envelope: []byte(`{"payload":"` + commit + `"}`)}
}

func keepReceipts(t *testing.T, s store.Store) {
	got[store.ReceiptKey](t)(s.AddReceiptKey(t.Context(), receiptKeyOf("k1"), false))
	x, y := running(t, s), running(t, s)
	one := got[store.Receipt](t)(s.KeepReceipt(t.Context(), receiptFor(x, "c1")))
	two := got[store.Receipt](t)(s.KeepReceipt(t.Context(), receiptFor(x, "c2")))
	other := got[store.Receipt](t)(s.KeepReceipt(t.Context(), receiptFor(y, "c1")))
	equal(t, got[store.Receipt](t)(s.Receipt(t.Context(), one.ID)), one)
	equal(t, string(one.Envelope), `{"payload":"c1"}`)
	one.Envelope, two.Envelope, other.Envelope = nil, nil, nil
	equal(t, got[[]store.Receipt](t)(s.ReceiptsOf(t.Context(), x.ID)), []store.Receipt{one, two})
	equal(t, got[[]store.Receipt](t)(s.ReceiptsOf(t.Context(), y.ID)), []store.Receipt{other})
	for _, id := range []string{"", "none", "\x00", other.ID + "x"} {
		_, err := s.Receipt(t.Context(), id)
		wantCode(t, err, task.NotFound)
	}
	empty := receiptFor(x, "c3")
	empty.Envelope = nil
	_, err := s.KeepReceipt(t.Context(), empty)
	wantCode(t, err, task.Invalid)
	_, err = s.KeepReceipt(t.Context(), receiptFor(x, ""))
	wantCode(t, err, task.Invalid)
}

func keepReceiptsOnce(t *testing.T, s store.Store) {
	got[store.ReceiptKey](t)(s.AddReceiptKey(t.Context(), receiptKeyOf("k1"), false))
	x := running(t, s)
	first := got[store.Receipt](t)(s.KeepReceipt(t.Context(), receiptFor(x, "c1")))
	again := receiptFor(x, "c1")
	again.Envelope = []byte("another")
	equal(t, got[store.Receipt](t)(s.KeepReceipt(t.Context(), again)), first)
	equal(t, got[store.Receipt](t)(s.Receipt(t.Context(), first.ID)), first)
	equal(t, len(got[[]store.Receipt](t)(s.ReceiptsOf(t.Context(), x.ID))), 1)
}

func keepReceiptsOfRuns(t *testing.T, s store.Store) {
	got[store.ReceiptKey](t)(s.AddReceiptKey(t.Context(), receiptKeyOf("k1"), false))
	x := running(t, s)
	got[store.Receipt](t)(s.KeepReceipt(t.Context(), receiptFor(x, "c1")))
	lost := moved(t, s, x, task.Lost)
	_, err := s.KeepReceipt(t.Context(), receiptFor(x, "c2"))
	wantCode(t, err, task.StaleGeneration)
	got[store.Receipt](t)(s.KeepReceipt(t.Context(), receiptFor(lost, "c1")))
	equal(t, len(got[[]store.Receipt](t)(s.ReceiptsOf(t.Context(), x.ID))), 2)
	_, err = s.KeepReceipt(t.Context(), receiptFor(task.Task{ID: "none", Generation: 1}, "c1"))
	wantCode(t, err, task.NotFound)
}

func receiptKeys(t *testing.T, s store.Store) {
	equal(t, len(got[[]store.ReceiptKey](t)(s.ReceiptKeys(t.Context()))), 0)
	one := got[store.ReceiptKey](t)(s.AddReceiptKey(t.Context(), receiptKeyOf("k1"), false))
	equal(t, got[store.ReceiptKey](t)(s.AddReceiptKey(t.Context(), receiptKeyOf("k2"), false)), one)
	equal(t, got[[]store.ReceiptKey](t)(s.ReceiptKeys(t.Context())), []store.ReceiptKey{one})
	three := got[store.ReceiptKey](t)(s.AddReceiptKey(t.Context(), receiptKeyOf("k3"), true))
	one.Private = nil
	equal(t, got[[]store.ReceiptKey](t)(s.ReceiptKeys(t.Context())), []store.ReceiptKey{three, one})
	_, err := s.AddReceiptKey(t.Context(), receiptKeyOf("k1"), true)
	wantCode(t, err, task.Conflict)
	equal(t, got[[]store.ReceiptKey](t)(s.ReceiptKeys(t.Context())), []store.ReceiptKey{three, one})
	for _, half := range []store.ReceiptKey{{ID: "k4", Public: []byte("p")}, {ID: "k4", Private: []byte("p")}, {Public: []byte("p"), Private: []byte("p")}} {
		_, err := s.AddReceiptKey(t.Context(), half, true)
		wantCode(t, err, task.Invalid)
	}
}

func receiptKeyTogether(t *testing.T, s store.Store) {
	var group errgroup.Group
	signing := make([]store.ReceiptKey, 8)
	for i := range signing {
		group.Go(func() (err error) {
			signing[i], err = s.AddReceiptKey(t.Context(), receiptKeyOf(string(rune('a'+i))), false)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	kept := got[[]store.ReceiptKey](t)(s.ReceiptKeys(t.Context()))
	equal(t, len(kept), 1)
	for _, one := range signing {
		equal(t, one, kept[0])
	}
}
