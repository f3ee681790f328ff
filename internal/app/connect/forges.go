package connect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// open makes the adapter, with the token of the answers or, if it is none of theirs, with
// that of the configuration.
func (w *work) open() (Forge, error) {
	return w.Open(Target{Forge: w.answers.Forge, URL: w.answers.URL, Token: w.answers.Token.Value})
}

// Labels are the labels that Toryo puts on items of a forge.
func Labels(c config.Config, of task.Forge) []forge.Label {
	names := c.LabelNames(of)
	var all []forge.Label
	for _, one := range []struct {
		label              task.Label
		color, description string
	}{
		{task.BotLabel, "1d76db", "A task of the coding agent that waits"},
		{task.ProcessingLabel, "fbca04", "The coding agent works on it"},
		{task.PausedLabel, "c5def5", "A task of the coding agent that is paused"},
		{task.StoppedLabel, "bfbfbf", "A task of the coding agent that was stopped"},
		{task.DoneLabel, "0e8a16", "The coding agent has finished it"},
		{task.FailedLabel, "d93f0b", "A task of the coding agent that has failed"},
	} {
		all = append(all, forge.Label{Name: names[one.label], Color: one.color, Description: one.description})
	}
	return append(all, forge.Label{Name: c.Review.Label, Color: "5319e7", Description: "Waits for a review"})
}

// labels creates the labels that are missing.
func (w *work) labels(ctx context.Context) error {
	if w.kind.Forge == "" || len(w.answers.Repositories) == 0 {
		return nil
	}
	f, err := w.open()
	if err != nil {
		return err
	}
	for _, repository := range w.answers.Repositories {
		if err := w.labelsIn(ctx, f, repository); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) labelsIn(ctx context.Context, f Forge, repository string) error {
	what := "labels of " + repository
	there, err := f.Labels(ctx, repository)
	if err != nil {
		return w.leaveOut(ctx, what, err, "they are created when they are needed")
	}
	missing := slices.DeleteFunc(Labels(w.loaded, w.kind.Forge), func(label forge.Label) bool {
		return slices.ContainsFunc(there, func(name string) bool { return strings.EqualFold(name, label.Name) })
	})
	if len(missing) == 0 {
		w.Report(Step{What: what, State: Unchanged})
		return nil
	}
	if w.DryRun {
		w.Report(Step{What: what, State: Planned, Detail: fmt.Sprintf("%d are missing", len(missing))})
		return nil
	}
	for _, label := range missing {
		if err := w.createLabel(ctx, f, repository, label); err != nil {
			return w.leaveOut(ctx, what, err, "they are created when they are needed")
		}
	}
	w.Report(Step{What: what, State: Done, Detail: fmt.Sprintf("%d created", len(missing))})
	return nil
}

// createLabel creates a label that was not there a moment ago, and notes it before.
func (w *work) createLabel(ctx context.Context, f Forge, repository string, label forge.Label) error {
	noted := recordedLabel{w.kind.Forge, w.answers.URL, repository, label.Name}
	addOnce(&w.record.Labels, noted)
	if err := w.record.save(); err != nil {
		return err
	}
	created, err := f.CreateLabel(ctx, repository, label)
	// Somebody was quicker, or the forge has refused it: it is not ours. Of what the forge did
	// not answer nobody knows.
	if err == nil && !created || err != nil && ctx.Err() == nil && !forge.Temporary(err) {
		drop(&w.record.Labels, noted)
		return errors.Join(err, w.record.save())
	}
	return err
}

// leaveOut reports what is done without, unless the reason is that the program is to end or
// that our own folder cannot be written.
func (w *work) leaveOut(ctx context.Context, what string, err error, instead string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if task.CodeOf(err) == task.DataDir {
		return err
	}
	explained := Explain(err, w.kind, w.answers.URL)
	w.Report(Step{What: what, State: LeftOut, Detail: explained.Error() + "; " + instead})
	return nil
}
