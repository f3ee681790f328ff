package board

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	program "github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// watchOverlap is by how much the time between two looks at items is looked at twice:
	// processes take the time of a change before they commit it, and clocks are set back.
	watchOverlap = 10 * time.Minute
	// settling is how long after the last change to a folder another one may have the same
	// time.
	settling = time.Second
)

// Watch finds what nobody tells of: items that other processes have changed, and what was
// pushed into the folders of repositories, as anybody with access to them can. It reads
// what has changed and not what is there. It is for one goroutine.
type Watch struct {
	board *Board

	since time.Time
	seen  map[task.Key]time.Time // when items were changed that have been since watchOverlap

	pulls    map[string][]openPull        // open pull requests, by repository
	branches map[string]folders           // what the folders of their branches look like
	commits  map[string]map[string]string // and what the branches of the pull requests were at, by name
}

// openPull is an open pull request.
type openPull struct {
	key        task.Key
	head, base string // branches
}

// folders is a hash of what the folders of branches look like.
type folders [sha256.Size]byte

// Watch begins to watch.
func (b *Board) Watch() *Watch {
	return &Watch{board: b, since: time.Now(), branches: map[string]folders{}, commits: map[string]map[string]string{}}
}

// Items returns the items that have changed since the last call, or since Watch the first
// time.
func (w *Watch) Items(ctx context.Context) ([]task.Key, error) {
	begun := time.Now()
	found, err := w.board.store.ListBoardItems(ctx, store.BoardFilter{UpdatedSince: w.since.Add(-watchOverlap)})
	if err != nil {
		return nil, storeError("list what has changed", err)
	}
	seen := make(map[task.Key]time.Time, len(found))
	var changed []task.Key
	for _, one := range found {
		key := keyOf(one)
		seen[key] = one.UpdatedAt
		before := w.seen == nil && one.UpdatedAt.Before(w.since.Add(-settling))
		if !before && !w.seen[key].Equal(one.UpdatedAt) {
			changed = append(changed, key)
		}
	}
	w.since, w.seen = begun, seen
	return changed, nil
}

func keyOf(x store.BoardItem) task.Key {
	return task.Key{Forge: task.Board, Repository: x.Repository, Kind: x.Kind, Number: x.Number}
}

// Pushes is what was pushed to one repository.
type Pushes struct {
	Repository string
	Pulls      []task.Key // open pull requests whose branch, not whose base, is at another commit
}

// Pushed returns the repositories with open pull requests in which a branch of one of them,
// or the base, is at another commit than at the last call; so is that of a pull request
// which was not open then, unless another one has the same branch. Same says that the same pull requests are open as then. It fails if they
// cannot be listed. What cannot be read of one repository is no reason to leave out the
// others: unread says by its name why.
func (w *Watch) Pushed(ctx context.Context, same bool) (pushed []Pushes, unread map[string]error, err error) {
	if !same || w.pulls == nil {
		if err := w.listPulls(ctx); err != nil {
			return nil, nil, err
		}
	}
	unread = map[string]error{}
	for repository, pulls := range w.pulls {
		is, settled, failed := branchFolders(w.board.Path(repository))
		if failed == nil && (w.branches[repository] != is || w.knowsLess(repository, pulls)) {
			var push Pushes
			var moved bool
			if push, moved, failed = w.moved(ctx, repository, pulls); moved {
				pushed = append(pushed, push)
			}
		}
		if failed != nil {
			unread[repository] = failed
			continue
		}
		if w.branches[repository] = is; !settled {
			delete(w.branches, repository) // a push in the same moment would look the same
		}
	}
	return pushed, unread, nil
}

// knowsLess reports whether a pull request is new, so that the commits of its branches were not read.
func (w *Watch) knowsLess(repository string, pulls []openPull) bool {
	known := w.commits[repository]
	return slices.ContainsFunc(pulls, func(pull openPull) bool {
		_, head := known[pull.head]
		_, base := known[pull.base]
		return !head || !base
	})
}

// moved reads the branches of a repository, and returns what has changed for its open pull
// requests, if anything has. A repository that is not there has no branches.
func (w *Watch) moved(ctx context.Context, repository string, pulls []openPull) (push Pushes, moved bool, err error) {
	output := ""
	if _, err := os.Stat(w.board.Path(repository)); !errors.Is(err, fs.ErrNotExist) {
		if output, err = git(ctx, w.board.Path(repository), nil, "for-each-ref", "--format="+program.BranchFormat, "refs/heads/"); err != nil {
			return Pushes{}, false, err
		}
	}
	all := program.ParseBranches(output)
	was, commits := w.commits[repository], map[string]string{}
	w.commits[repository], push.Repository = commits, repository
	for _, pull := range pulls {
		commits[pull.head], commits[pull.base] = all[pull.head], all[pull.base]
		if before, known := was[pull.head]; !known || before != all[pull.head] {
			push.Pulls = append(push.Pulls, pull.key)
		}
		moved = moved || was[pull.base] != all[pull.base]
	}
	return push, moved || len(push.Pulls) > 0, nil
}

func (w *Watch) listPulls(ctx context.Context) error {
	found, err := w.board.store.ListBoardItems(ctx, store.BoardFilter{Kind: task.Pull, State: store.BoardOpen})
	if err != nil {
		return storeError("list the pull requests", err)
	}
	w.pulls = make(map[string][]openPull)
	for _, one := range found {
		w.pulls[one.Repository] = append(w.pulls[one.Repository], openPull{keyOf(one), one.Head, one.Base})
	}
	none := func(repository string) bool { return len(w.pulls[repository]) == 0 }
	maps.DeleteFunc(w.branches, func(repository string, _ folders) bool { return none(repository) })
	maps.DeleteFunc(w.commits, func(repository string, _ map[string]string) bool { return none(repository) })
	return nil
}

// branchFolders is a hash of the folders and files in which git keeps the branches of a
// repository, without reading them. Git writes a branch to a new file and then gives it its
// name, which changes the time of the folder; so do the tables of the other format that it
// has. Settled means that no change is so young that another may have the same time. A
// repository that is not there has no branches: it is in the folder of another server.
func branchFolders(repository string) (is folders, settled bool, err error) {
	hash := sha256.New()
	settled = true
	note := func(path string, info fs.FileInfo) {
		_, _ = fmt.Fprintf(hash, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		settled = settled && time.Since(info.ModTime()) > settling
	}
	for _, name := range []string{"packed-refs", "reftable"} {
		info, err := os.Stat(filepath.Join(repository, name))
		switch {
		case err == nil:
			note(name, info)
		case !errors.Is(err, fs.ErrNotExist):
			return folders{}, false, err
		}
	}
	err = filepath.WalkDir(filepath.Join(repository, "refs", "heads"), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was removed while we looked
		}
		if err != nil || !entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			note(path, info)
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	})
	return folders(hash.Sum(nil)), settled, err
}
