package broker

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/receipt"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Receipts signs what runs say that verification found. It adds what the server knows
// itself, so that a run gets receipts for nothing but the commits that were published of
// its own task.
type Receipts struct {
	Store store.Receipts
	// URL is where people reach the server; empty if nobody has said so.
	URL string
	// Mask takes secrets out of text; nil means that nothing is looked for.
	Mask func(string) string
}

// MakeKey makes the key that signs, if there is none. Servers may do so at the same time.
func (r *Receipts) MakeKey(ctx context.Context) error {
	keys, err := r.Store.ReceiptKeys(ctx)
	if err != nil || len(keys) > 0 {
		return err
	}
	_, err = AddReceiptKey(ctx, r.Store, false)
	return err
}

// AddReceiptKey makes a key that signs receipts, and returns the one that does so from
// now on: the new one if there was none, or if that is to be replaced.
func AddReceiptKey(ctx context.Context, in store.Receipts, replace bool) (store.ReceiptKey, error) {
	made, err := receipt.NewKey()
	if err != nil {
		return store.ReceiptKey{}, err
	}
	private, err := made.Encode()
	if err != nil {
		return store.ReceiptKey{}, err
	}
	public, err := receipt.PEM(made.PublicKey)
	if err != nil {
		return store.ReceiptKey{}, err
	}
	return in.AddReceiptKey(ctx, store.ReceiptKey{ID: made.ID(), Public: public, Private: private}, replace)
}

// sign signs a verdict about what was published, and keeps the receipt. A run that asks
// again for the same commit gets the receipt that is there.
func (r *Receipts) sign(ctx context.Context, facts receipt.Facts, verdict receipt.Verdict) (store.Receipt, error) {
	if r.URL != "" {
		facts.Run = r.URL + "/tasks/" + string(facts.Task)
	}
	statement, err := receipt.New(facts, verdict.Fit(r.Mask))
	if err != nil {
		return store.Receipt{}, err
	}
	keys, err := r.Store.ReceiptKeys(ctx)
	if err != nil {
		return store.Receipt{}, err
	}
	if len(keys) == 0 {
		return store.Receipt{}, task.Errorf(task.Internal, "there is no key to sign receipts with")
	}
	key, err := receipt.ParsePrivate(keys[0].Private)
	if err != nil {
		return store.Receipt{}, err
	}
	envelope, err := receipt.Sign(ctx, key, statement)
	if err != nil {
		return store.Receipt{}, err
	}
	return r.Store.KeepReceipt(ctx, store.Receipt{
		Task: facts.Task, Generation: facts.Generation, Commit: facts.Commit, Key: keys[0].ID, Envelope: envelope, CreatedAt: facts.SignedAt,
	})
}

// notice says where a receipt is.
func (r *Receipts) notice(kept store.Receipt, in task.Language) string {
	said := notice.Notice{Commit: kept.Commit, Receipt: kept.ID}
	if r.URL != "" {
		said.ReceiptURL = r.URL + "/receipts/" + kept.ID
	}
	return said.Attested(in)
}

// attest makes the receipt of what was published, if there was a verification, and
// returns the description of the pull request. A run can publish a commit of somebody
// else, such as the base, and gets no receipt for it. A pull request that the work was about
// keeps its own description: there the last comment has the link.
func (r *Runs) attest(ctx context.Context, held Lease, wish PullWish, base string, published outbox.Published) (text string, err error) {
	if r.options.Receipts == nil || wish.Verdict == nil {
		return wish.Text, nil
	}
	if !published.Own {
		r.options.Log.WarnContext(ctx, "no receipt: the commit was not made for the task", "task", held.ID, "commit", published.Commit)
		return wish.Text, nil
	}
	kept, err := r.options.Receipts.sign(ctx, receipt.Facts{
		Repository: string(held.Key.Forge) + ":" + held.Key.Repository, Commit: published.Commit, Tree: published.Tree,
		Base: published.Base, BaseBranch: base, Item: held.Key.String(), Task: held.ID, Generation: held.Generation,
		Draft: wish.unasked, SignedAt: r.options.Now().Truncate(time.Second),
	}, *wish.Verdict)
	if err != nil || held.Key.Kind == task.Pull {
		return wish.Text, err
	}
	return joined(wish.Text, r.options.Receipts.notice(kept, r.options.Status.LanguageOf(ctx, held.Task))), nil
}

// attested says where the receipt of a run on a pull request is, for its last comment.
func (r *Runs) attested(ctx context.Context, held Lease, in task.Language) (string, error) {
	if r.options.Receipts == nil || held.Key.Kind != task.Pull {
		return "", nil
	}
	all, err := r.options.Receipts.Store.ReceiptsOf(ctx, held.ID)
	if err != nil || len(all) == 0 || all[len(all)-1].Generation != held.Generation {
		return "", err
	}
	return r.options.Receipts.notice(all[len(all)-1], in), nil
}
