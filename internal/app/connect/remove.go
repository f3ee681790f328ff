package connect

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// removal is one Remove.
type removal struct {
	*Installer
	record *record
	loaded config.Config
	opened map[Target]Forge
}

// Remove undoes what Apply did, and nothing else: webhooks, labels that are not in use, files with
// secrets, and keys of the configuration that still have the value which they were given. A
// forge that does not answer is an error, and the rest stays for the next Remove, unless only
// what is local is wanted; what it refuses is left to a person. The data directory stays, but for
// the record. The keys come last: among them is where the data directory is, by which the next
// Remove finds the rest.
func (i *Installer) Remove(ctx context.Context) error {
	r, err := readRecord(i.DataDir)
	if err != nil {
		return err
	}
	defer r.close()
	if err := i.tidy(r.data); err != nil {
		return err
	}
	if r.empty() {
		i.Report(Step{What: "what toryo init has made", State: Unchanged, Detail: "there is nothing to undo according to " + r.path()})
		return nil
	}
	if err := i.checkConfig(r); err != nil {
		return err
	}
	r.Config = i.ConfigFile
	loaded, _ := config.Load(r.Config, i.Environ, i.Overrides)
	w := &removal{Installer: i, record: r, loaded: loaded, opened: map[Target]Forge{}}
	if _, err := w.before(); err != nil { // better now than half-way
		return err
	}
	for _, step := range []func(context.Context) error{w.hooks, w.labels, w.secrets, w.keys} {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := step(ctx); err != nil {
			return err
		}
	}
	if i.DryRun {
		return nil
	}
	if err := r.data.remove(RecordFile); err != nil {
		return task.Wrap(task.DataDir, err, "the record of toryo init cannot be removed")
	}
	return nil
}

// open makes the adapter of a forge, once.
func (w *removal) open(of task.Forge, address string) (Forge, error) {
	if w.Local {
		return nil, task.Errorf(task.Forbidden, "%s is not asked", address)
	}
	target := Target{Forge: of, URL: address, Token: TokenOf(w.loaded, of)}
	if f, is := w.opened[target]; is {
		return f, nil
	}
	if !sameHook(address, w.loaded.Account(of).URL) { // the token is for another one
		return nil, task.Errorf(task.Forbidden, "the configuration does not name %s any more", address)
	}
	f, err := w.Open(target)
	if err == nil {
		w.opened[target] = f
	}
	return f, err
}

// forget takes something out of the record when it is gone, or left to a person.
func (w *removal) forget(step Step, take func()) error {
	if w.DryRun && step.State == Done {
		step.State = Planned
	}
	w.Report(step)
	if w.DryRun {
		return nil
	}
	take()
	return w.record.save()
}

// outcome is what became of something on a forge. An error is returned only if it may go
// better later.
func (w *removal) outcome(ctx context.Context, what string, kind Kind, address string, err error) (Step, error) {
	switch {
	case err == nil:
		return Step{What: what + " removed", State: Done}, nil
	case ctx.Err() != nil:
		return Step{}, ctx.Err()
	case forge.Temporary(err):
		return Step{}, Explain(err, kind, address)
	}
	return Step{What: what, State: LeftOut, Detail: "it stays, remove it by hand: " + err.Error()}, nil
}

func (w *removal) hooks(ctx context.Context) error {
	for _, hook := range slices.Clone(w.record.Hooks) {
		what := "webhook of " + hook.Repository
		if hook.Edited {
			step := Step{What: what, State: LeftOut, Detail: "it was there before toryo init and stays; its secret is not known here any more"}
			if err := w.forget(step, func() { drop(&w.record.Hooks, hook) }); err != nil {
				return err
			}
			continue
		}
		f, err := w.open(hook.Forge, hook.Address)
		if err == nil && !w.DryRun {
			err = deleteHooks(ctx, f, hook)
		}
		step, err := w.outcome(ctx, what, KindOf(hook.Forge), hook.Address, err)
		if err != nil {
			return err
		}
		if err := w.forget(step, func() { drop(&w.record.Hooks, hook) }); err != nil {
			return err
		}
	}
	return nil
}

func (w *removal) labels(ctx context.Context) error {
	for _, label := range slices.Clone(w.record.Labels) {
		what := fmt.Sprintf("label %q of %s", label.Name, label.Repository)
		step, err := w.label(ctx, what, label)
		if err != nil {
			return err
		}
		if err := w.forget(step, func() { drop(&w.record.Labels, label) }); err != nil {
			return err
		}
	}
	return nil
}

// label deletes one label, unless an item has it or may have it.
func (w *removal) label(ctx context.Context, what string, label recordedLabel) (Step, error) {
	kind := KindOf(label.Forge)
	f, err := w.open(label.Forge, label.Address)
	if err != nil {
		return w.outcome(ctx, what, kind, label.Address, err)
	}
	used, err := w.inUse(ctx, f, label)
	if err != nil {
		return w.outcome(ctx, what, kind, label.Address, err)
	}
	if used != "" {
		return Step{What: what, State: LeftOut, Detail: "it stays: " + used}, nil
	}
	if !w.DryRun {
		err = f.DeleteLabel(ctx, label.Repository, label.Name)
	}
	return w.outcome(ctx, what, kind, label.Address, err)
}

// inUse says who uses a label, or nothing. Of closed items no forge is asked: where tasks
// have been done, they may have it.
func (w *removal) inUse(ctx context.Context, f Forge, label recordedLabel) (string, error) {
	items, err := f.List(ctx, forge.Query{Repository: label.Repository, Labels: []string{label.Name}})
	if err != nil {
		return "", err
	}
	if len(items) > 0 {
		return fmt.Sprintf("it is on %s", items[0].Key), nil
	}
	if w.Used == nil {
		return "", nil
	}
	used, err := w.Used(ctx, label.Forge, label.Repository)
	if err != nil || !used {
		return "", err
	}
	return "tasks were done in " + label.Repository + ", and their issues may have it", nil
}

// undone is the configuration as it was.
type undone struct {
	there   bool   // the file
	changed bool   // it differs from what is there now
	text    []byte // of it
	kept    []string
}

// before is what becomes of the configuration.
func (w *removal) before() (undone, error) {
	text, there, err := readBounded(w.record.Config)
	if err != nil {
		return undone{}, task.Wrap(task.BadConfig, err, w.record.Config+" cannot be read")
	}
	if !there {
		return undone{}, nil
	}
	changes, kept, err := w.undoing(text)
	if err != nil {
		return undone{}, err
	}
	edited, err := config.Edit(text, changes)
	return undone{there: true, changed: !bytes.Equal(text, edited), text: edited, kept: kept}, err
}

// keys gives the configuration back what it had.
func (w *removal) keys(context.Context) error {
	made, err := w.before()
	if err != nil {
		return err
	}
	if !made.there {
		return w.forgetKeys()
	}
	for _, key := range made.kept {
		w.Report(Step{What: key, State: LeftOut, Detail: "it was changed since and stays"})
	}
	gone := w.record.NewConfig && string(made.text) == newFile
	switch {
	case w.DryRun:
	case gone:
		if err := os.Remove(w.record.Config); err != nil {
			return task.Wrap(task.Conflict, err, "cannot remove "+w.record.Config)
		}
	case made.changed:
		if err := WriteWhole(w.record.Config, made.text, modeOf(w.record.Config, 0o644)); err != nil {
			return task.Wrap(task.Conflict, err, "cannot write "+w.record.Config)
		}
	}
	step := Step{What: w.record.Config + " as it was", State: Done}
	if gone {
		step.What = w.record.Config + " removed"
	}
	if err := w.forget(step, func() {}); err != nil || w.DryRun {
		return err
	}
	return w.forgetKeys()
}

func (w *removal) forgetKeys() error {
	if w.DryRun {
		return nil
	}
	w.record.Keys, w.record.Sections, w.record.NewConfig = nil, nil, false
	return w.record.save()
}

// undoing are the changes that take back what was set. A key that somebody has changed since
// is kept as it is.
func (w *removal) undoing(text []byte) (changes config.Changes, kept []string, err error) {
	changes.Restore = map[string]string{}
	for _, key := range w.record.Keys {
		_, found, err := config.Written(text, key.Key)
		if err != nil {
			return changes, nil, err
		}
		same := !found
		if !key.Removed {
			set, err := config.Edit(text, config.Changes{Set: map[string]string{key.Key: key.Value}})
			if err != nil {
				return changes, nil, err
			}
			same = found && bytes.Equal(set, text)
		}
		switch {
		case !same && (found || key.Removed):
			kept = append(kept, key.Key)
		case !same: // taken out by somebody
		case key.Had:
			changes.Restore[key.Key] = key.Before
		default:
			changes.Remove = append(changes.Remove, key.Key)
		}
	}
	changes.Remove = append(changes.Remove, w.record.Sections...)
	return changes, kept, nil
}

// secrets removes the files that are noted, by their names in the folder for secrets: the data
// directory may have been moved, and its owner could have noted any other file.
func (w *removal) secrets(context.Context) error {
	secrets, err := w.record.data.secrets()
	if err != nil {
		return err
	}
	defer secrets.close()
	for _, noted := range slices.Clone(w.record.Secrets) {
		name := filepath.Base(noted)
		step := Step{What: "secret " + filepath.Join(secrets.path, name) + " removed", State: Done}
		if secrets.isOther(name) {
			step = Step{What: "secret " + filepath.Join(secrets.path, name), State: LeftOut, Detail: "it is a link, or no file, and stays"}
		} else if !w.DryRun {
			if err := w.record.data.removeSecret(name); err != nil {
				return err
			}
		}
		if err := w.forget(step, func() { drop(&w.record.Secrets, noted) }); err != nil {
			return err
		}
	}
	return nil
}
