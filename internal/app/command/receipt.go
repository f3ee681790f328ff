package command

import (
	"bytes"
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/receipt"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// receiptStore is what the commands need of the database.
type receiptStore interface {
	store.Receipts
	store.Listing
	access.AuditStore
	access.PeopleStore
}

// Receipt is the command toryo receipt.
func Receipt(p site.Program) *cobra.Command {
	c := cli.Group("receipt", "Check what a server has signed about a commit",
		receiptVerifyCommand(p), receiptShowCommand(p), receiptListCommand(p), receiptKeyCommand(p))
	c.Long = `A receipt says what verification found about a commit that was published, signed by the
server: an in-toto statement in a DSSE envelope. RECEIPT is a file, an address, or the id of
a receipt. An id is looked up in the database, or with --server on that server.`
	c.Example = `  toryo receipt verify https://toryo.example.com/receipts/0199…
  toryo receipt verify receipt.json --key key.pem --commit "$(git rev-parse HEAD)"
  toryo receipt key > key.pem`
	return c
}

// onReceipt is what the commands on one receipt have.
type onReceipt struct {
	operate
	key    string
	commit string
}

func receiptVerifyCommand(p site.Program) *cobra.Command {
	o := onReceipt{operate: operate{Program: p}}
	c := &cobra.Command{
		Use:   "verify RECEIPT",
		Short: "Verify the signature of a receipt and print it",
		Long: `Check that a receipt was signed with a known key and print what it says. The exit code is 0
if it was, and 1 if it was not or if it is about another commit than --commit.

The keys are those that --key names, or those of the server that --server names, or those
in the database of this machine. A key that comes from whoever gave you the receipt proves
nothing. TORYO_TOKEN is sent to the server that --server names only.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.verify(c.Context(), args[0]) },
	}
	o.bind(c)
	c.Flags().StringVar(&o.key, "key", "", "public keys in PEM (`FILE` or address)")
	c.Flags().StringVar(&o.commit, "commit", "", "the commit that it has to be about (`HASH`, whole)")
	return c
}

func receiptShowCommand(p site.Program) *cobra.Command {
	o := onReceipt{operate: operate{Program: p}}
	c := &cobra.Command{
		Use:   "show RECEIPT",
		Short: "Print a receipt without verifying its signature",
		Args:  cobra.ExactArgs(1),
		RunE:  func(c *cobra.Command, args []string) error { return o.show(c.Context(), args[0]) },
	}
	o.bind(c)
	return c
}

func (o *onReceipt) verify(ctx context.Context, name string) error {
	source, err := o.receiptSource(name, o.key != "")
	if err != nil {
		return err
	}
	envelope, err := source.receipt(ctx, name)
	if err != nil {
		return err
	}
	text, from, err := source.keys(ctx, o.key)
	if err != nil {
		return err
	}
	keys, err := receipt.ParsePEM(text)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	verified, err := receipt.Verify(ctx, envelope, keys...)
	if err != nil {
		return err // one that is not valid has no code: the exit code is 1
	}
	if o.commit != "" && o.commit != verified.Statement.Commit() {
		return &receipt.RefusedError{
			Reason: "it is about the commit " + verified.Statement.Commit() + ", not about " + cli.OneLine(o.commit),
			Advice: "give the whole hash, or get the receipt of that commit: the pull request has its address",
		}
	}
	if o.json {
		return cli.PrintJSON(o.Stdout, verified.Statement)
	}
	if _, err := fmt.Fprintf(o.Stdout, "verified: signed with the key %s\n  of %s\n\n", verified.Key, from); err != nil {
		return err
	}
	return printReceipt(o.Stdout, verified.Statement)
}

func (o *onReceipt) show(ctx context.Context, name string) error {
	source, err := o.receiptSource(name, true)
	if err != nil {
		return err
	}
	envelope, err := source.receipt(ctx, name)
	if err != nil {
		return err
	}
	statement, err := receipt.Read(envelope)
	if err != nil {
		return err
	}
	if o.json {
		return cli.PrintJSON(o.Stdout, statement)
	}
	if _, err := fmt.Fprint(o.Stdout, "NOT verified: toryo receipt verify checks who signed it\n\n"); err != nil {
		return err
	}
	return printReceipt(o.Stdout, statement)
}

func receiptListCommand(p site.Program) *cobra.Command {
	o := operate{Program: p}
	c := &cobra.Command{
		Use:   "list TASK",
		Short: "List the receipts of a task",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.withTasks(c.Context(), access.Viewer, func(tasks taskSource) error {
				return o.listReceipts(c.Context(), tasks, args[0])
			})
		},
	}
	o.bind(c)
	o.completeTasks(c)
	return c
}

func (o *operate) listReceipts(ctx context.Context, tasks taskSource, name string) error {
	of, err := tasks.find(ctx, name)
	if err != nil {
		return err
	}
	found, err := tasks.receipts(ctx, task.ID(of.ID))
	if err != nil {
		return err
	}
	if o.json {
		return cli.PrintJSON(o.Stdout, found)
	}
	table := tabwriter.NewWriter(o.Stdout, 0, 0, 2, ' ', 0)
	for _, one := range found.Receipts {
		if _, err := fmt.Fprintf(table, "%s\t%s\t%s\n", one.ID, one.Commit, one.CreatedAt.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	return table.Flush()
}

func receiptKeyCommand(p site.Program) *cobra.Command {
	o := operate{Program: p}
	replace := false
	c := &cobra.Command{
		Use:   "key",
		Short: "Print the public keys of receipts, the current one first",
		Long: `Print the public keys of the receipts in PEM, the one that signs first. A server that runs
has them at /receipts/key.pem too. With --new the key that signs is replaced, on all servers
at once: its private part is forgotten, and what it has signed stays valid.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			with := cli.WithStore
			if replace {
				with = cli.WithNewStore
			}
			return with(c.Context(), o.Program, &o.settings, func(database store.Store) error {
				return o.printReceiptKeys(c.Context(), database, replace)
			})
		},
	}
	o.settings.Bind(c, cli.DataFlag)
	c.Flags().BoolVar(&replace, "new", false, "replace the key that signs")
	return c
}

func (o *operate) printReceiptKeys(ctx context.Context, database receiptStore, replace bool) error {
	if replace {
		err := cli.Audited(ctx, o.Program, database, "receipt.key", "", func() error {
			_, err := broker.AddReceiptKey(ctx, database, true)
			return err
		})
		if err != nil {
			return err
		}
	}
	text, err := receiptKeysIn(ctx, database)
	if err != nil {
		return err
	}
	_, err = o.Stdout.Write(text)
	return err
}

// receiptKeysIn are the public keys in a database.
func receiptKeysIn(ctx context.Context, database store.Receipts) ([]byte, error) {
	keys, err := database.ReceiptKeys(ctx)
	if err == nil && len(keys) == 0 {
		err = task.Errorf(task.NotFound, "there is no key for receipts yet").WithHint("the server creates one when it starts; or create one with toryo receipt key --new")
	}
	var all bytes.Buffer
	for _, key := range keys {
		all.Write(key.Public)
	}
	return all.Bytes(), err
}
