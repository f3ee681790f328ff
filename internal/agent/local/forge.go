// Package local does one task without a server and a forge: on a repository of this
// machine, with a budget that is kept in memory. What the run says to people is printed.
package local

import (
	"context"
	"fmt"
	"io"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Forge stands in for a forge in a local run: comments are printed on the terminal.
type Forge struct {
	Out        io.Writer
	Repository string // as it is shown to people
}

var _ phase.Forge = Forge{}

// Comments implements phase.Forge.
func (Forge) Comments(context.Context, int64) ([]task.CommentEntry, error) { return nil, nil }

// LatestComments implements phase.Forge.
func (Forge) LatestComments(context.Context, int64) ([]task.CommentEntry, error) { return nil, nil }

// Images implements phase.Forge: there are no texts with images.
func (Forge) Images(context.Context) ([]phase.Image, error) { return nil, nil }

// References implements phase.Forge: there are no other items.
func (Forge) References(context.Context) ([]phase.Reference, error) { return nil, nil }

// Progress implements phase.Forge. The journal is shown already.
func (Forge) Progress(context.Context, string) error { return nil }

// AddComment implements phase.Forge.
func (d Forge) AddComment(_ context.Context, _, text string) error {
	_, err := fmt.Fprintf(d.Out, "\n%s\n\n", textfmt.Plain(text))
	return err
}

// Reply implements phase.Forge.
func (d Forge) Reply(ctx context.Context, name string, reply phase.ThreadReply) error {
	return d.AddComment(ctx, name, reply.Text)
}

// OpenPull implements phase.Forge: the branch is all that there is.
func (d Forge) OpenPull(_ context.Context, open phase.OpenPull) (phase.Pulled, error) {
	_, err := fmt.Fprintf(d.Out, "\n%s\n\n%s\n\nbranch %s of %s is at %s\n", textfmt.Plain(open.Title), textfmt.Plain(open.Body), open.Branch, d.Repository, open.Commit)
	return phase.Pulled{URL: "branch " + open.Branch, Opened: true}, err
}
