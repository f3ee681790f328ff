package agent

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// haltWithin is how long a run that the server has refused something, because it
// is to end, waits to be told so.
const haltWithin = 30 * time.Second

// referencesWithin is how long a run waits for other items that its own names:
// they are of use, and not needed.
const referencesWithin = 20 * time.Second

// runForge implements phase.Forge with requests to the server.
type runForge struct{ hold *hold }

// Comments implements phase.Forge.
func (d runForge) Comments(_ context.Context, after int64) ([]task.CommentEntry, error) {
	return d.hold.inbox.after(after), nil
}

// LatestComments implements phase.Forge. What comes here too is heard once; stops and pauses are
// left to who listens.
func (d runForge) LatestComments(ctx context.Context, after int64) ([]task.CommentEntry, error) {
	last := d.hold.inbox.begin(d.hold.assignment)
	for {
		signals, err := persist(ctx, callTimeout, func(ctx context.Context) (wire.Signals, error) { return d.hold.held.Signals(ctx, last, 0) })
		if err != nil {
			return nil, err
		}
		before := last
		if last = d.hold.inbox.add(signals.Comments); len(signals.Comments) == 0 || last == before {
			return d.hold.inbox.after(after), nil
		}
	}
}

// imagesWithin is how long a run waits for the images of its texts.
const imagesWithin = time.Minute

// Images implements phase.Forge.
func (d runForge) Images(ctx context.Context) ([]phase.Image, error) {
	ctx, cancel := context.WithTimeout(ctx, imagesWithin)
	defer cancel()
	found, err := persist(ctx, imagesWithin, d.hold.held.Images)
	images := make([]phase.Image, 0, len(found))
	for _, one := range found {
		images = append(images, phase.Image{Link: one.Link, Image: llm.Image{Hash: one.Hash, Type: one.Type, Width: one.Width, Height: one.Height, Data: one.Data}})
	}
	return images, err
}

// References implements phase.Forge.
func (d runForge) References(ctx context.Context) ([]phase.Reference, error) {
	ctx, cancel := context.WithTimeout(ctx, referencesWithin)
	defer cancel()
	found, err := persist(ctx, callTimeout, d.hold.held.References)
	references := make([]phase.Reference, 0, len(found))
	for _, one := range found {
		references = append(references, phase.Reference{
			Kind: task.ItemKind(one.Kind), Number: one.Number, State: one.State, Author: one.Author, Title: one.Title, Body: one.Body,
		})
	}
	return references, err
}

// Progress implements phase.Forge.
func (d runForge) Progress(_ context.Context, text string) error {
	d.hold.progress.set(d.hold.clean(text))
	return nil
}

// AddComment implements phase.Forge.
func (d runForge) AddComment(ctx context.Context, name, text string) error {
	return d.post(ctx, wire.NewComment{Name: name, Text: text})
}

// Reply implements phase.Forge.
func (d runForge) Reply(ctx context.Context, name string, reply phase.ThreadReply) error {
	return d.post(ctx, wire.NewComment{Name: name, Text: reply.Text, Thread: reply.Thread, Resolved: reply.Resolved})
}

func (d runForge) post(ctx context.Context, comment wire.NewComment) error {
	comment.Text = d.hold.clean(comment.Text)
	_, err := persist(ctx, callTimeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, d.hold.held.AddComment(ctx, comment)
	})
	return err
}

// OpenPull implements phase.Forge. The server refuses it while a stop is on its
// way to this run; then the end of the run is waited for.
func (d runForge) OpenPull(ctx context.Context, open phase.OpenPull) (phase.Pulled, error) {
	open.Title, open.Body = d.hold.clean(open.Title), d.hold.clean(open.Body)
	if open.Verdict != nil {
		fitted := open.Verdict.Fit(d.hold.clean)
		open.Verdict = &fitted
	}
	pulled, err := persist(ctx, pullTimeout, func(ctx context.Context) (wire.Pulled, error) {
		return d.hold.held.OpenPull(ctx, wire.OpenPull(open))
	})
	if task.CodeOf(err) == task.Conflict {
		waiting, cancel := context.WithTimeout(ctx, haltWithin)
		defer cancel()
		<-waiting.Done()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}
	return phase.Pulled(pulled), err
}
