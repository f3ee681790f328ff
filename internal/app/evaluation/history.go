package evaluation

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/eval"
	"github.com/toryo-dev/toryo/internal/eval/history"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// History are the tasks of a history. They are read once and kept in the folder of the results:
// what is merged, or edited on the forge, later would make them others. Kept says that they are
// from before. A check, which forgets no attempts, keeps their tasks too.
func (f *Folder) History(ctx context.Context, from history.Options, fresh, onlyCheck bool) (set taskset.Set, kept bool, err error) {
	if fresh && onlyCheck {
		has, err := eval.Folder(f.path).HasAttempts()
		if err != nil {
			return taskset.Set{}, false, err
		}
		fresh = !has
	}
	file := filepath.Join(f.path, tasksFile)
	if _, err = os.Lstat(file); err == nil && !fresh {
		set, err = history.Load(ctx, file, from.Repository)
		return set, true, err
	}
	if from.Dir, err = f.Work(); err != nil {
		return taskset.Set{}, false, err
	}
	defer func() { _ = workdir.Remove(from.Dir) }() // or the next time
	if set, err = history.Tasks(ctx, from); err != nil {
		return taskset.Set{}, false, err
	}
	if err := history.Save(file, set); err != nil {
		return taskset.Set{}, false, err
	}
	set, err = history.Load(ctx, file, from.Repository)
	return set, false, err
}

// Asked reads from a forge what pull requests were for. The name is FORGE:OWNER/NAME.
func Asked(c config.Config, name string) (func(context.Context, int64) (history.Asked, error), error) {
	kind, repository, found := strings.Cut(name, ":")
	if !found || repository == "" {
		return nil, task.Errorf(task.Usage, "%q is no repository of a forge", name).WithHint("give it as github:owner/name")
	}
	opened, err := site.OpenForge(c, task.Forge(kind))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, number int64) (history.Asked, error) {
		return asked(ctx, opened, repository, number)
	}, nil
}

// asked is the text of the issue that a pull request closes, or its own if it closes none.
func asked(ctx context.Context, from forge.Forge, repository string, number int64) (history.Asked, error) {
	key := task.Key{Forge: from.Name(), Repository: repository, Kind: task.Pull, Number: number}
	pull, err := from.Item(ctx, key)
	if err != nil {
		return history.Asked{}, err
	}
	for _, issue := range forge.Closes(pull.Title + "\n" + pull.Body) {
		key.Kind, key.Number = task.Issue, issue
		item, err := from.Item(ctx, key)
		if task.CodeOf(err) == task.NotFound {
			continue
		}
		if err != nil {
			return history.Asked{}, err
		}
		if !item.Confidential {
			return history.Asked{Text: item.Title + "\n\n" + item.Body}, nil
		}
	}
	return history.Asked{Text: pull.Title + "\n\n" + pull.Body, AfterWork: true}, nil
}
