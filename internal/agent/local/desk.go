// Package local is what a run needs that has no server and no forge: its budget is kept
// in memory, and what it says to people is printed.
package local

import (
	"context"
	"fmt"
	"io"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Desk is a desk without a forge: what is said to people goes to the terminal.
type Desk struct {
	Out        io.Writer
	Repository string // as it is shown to people
}

var _ phase.Desk = Desk{}

// Comments implements phase.Desk.
func (Desk) Comments(context.Context, int64) ([]task.CommentEntry, error) { return nil, nil }

// References implements phase.Desk: there are no other items.
func (Desk) References(context.Context) ([]phase.Reference, error) { return nil, nil }

// Progress implements phase.Desk. The journal is shown already.
func (Desk) Progress(context.Context, string) error { return nil }

// Say implements phase.Desk.
func (d Desk) Say(_ context.Context, _, text string) error {
	_, err := fmt.Fprintf(d.Out, "\n%s\n\n", textfmt.Plain(text))
	return err
}

// Reply implements phase.Desk.
func (d Desk) Reply(ctx context.Context, name, _, text string) error {
	return d.Say(ctx, name, text)
}

// OpenPull implements phase.Desk: the branch is all that there is.
func (d Desk) OpenPull(_ context.Context, open phase.OpenPull) (phase.Pulled, error) {
	_, err := fmt.Fprintf(d.Out, "\n%s\n\n%s\n\nbranch %s of %s is at %s\n", textfmt.Plain(open.Title), textfmt.Plain(open.Body), open.Branch, d.Repository, open.Commit)
	return phase.Pulled{URL: "branch " + open.Branch, Opened: true}, err
}
