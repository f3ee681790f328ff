package inspect

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

// entry is how a file differs between two trees.
type entry struct{ oldMode, newMode, oldHash, newHash string }

// errRead ends a program that writes more than is read.
var errRead = errors.New("enough was read")

// frugal has git map little of the packs at a time: what is mapped counts as memory.
var frugal = []string{"core.packedGitWindowSize=32m", "core.packedGitLimit=256m"}

// read runs git and reads what it writes as it comes, up to a limit: more is
// errTooLarge, and so is what takes git too much memory.
func (l *look) read(ctx context.Context, limit int64, args []string, parse func(*bufio.Reader) error) error {
	return l.readFor(ctx, limit, "", args, parse)
}

// readFor is read for a command that is given an input.
func (l *look) readFor(ctx context.Context, limit int64, input string, args []string, parse func(*bufio.Reader) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := l.Git.Run(ctx, git.Command{
			Dir: l.Dir, Args: args, Input: strings.NewReader(input), Output: writer, Memory: l.options.Memory,
		})
		_ = writer.CloseWithError(err)
		ended <- err
	}()
	limited := &io.LimitedReader{R: reader, N: limit + 1}
	err := parse(bufio.NewReaderSize(limited, 64<<10))
	if limited.N <= 0 {
		err = errTooLarge
	}
	_ = reader.CloseWithError(errRead)
	if err != nil {
		cancel()
	}
	ran := <-ended
	if failed, is := errors.AsType[*git.RunError](ran); is && !failed.Ended && failed.Contains("emory") { // out of it, or it cannot be allocated
		return errTooLarge
	}
	if err == nil {
		err = ran
	}
	return err
}

// sizes fails if files are too large to be compared. Git takes many times the memory of
// a file with many lines, however little of it has changed.
func (l *look) sizes(ctx context.Context, entries map[string]entry) error {
	names := map[string]string{} // by hash
	var asked strings.Builder
	ask := func(name, mode, hash string) {
		if _, is := names[hash]; !is && mode != noFile && mode != submodule {
			names[hash] = name
			asked.WriteString(hash + "\n")
		}
	}
	for name, entry := range entries {
		if entry.newMode != noFile { // what is gone is not compared
			ask(name, entry.oldMode, entry.oldHash)
			ask(name, entry.newMode, entry.newHash)
		}
	}
	room := l.options.MaxBlobs
	return l.readFor(ctx, maxNames, asked.String(), []string{"cat-file", "--batch-check=%(objectname) %(objectsize)"}, func(from *bufio.Reader) error {
		lines := bufio.NewScanner(from)
		for lines.Scan() {
			hash, digits, _ := strings.Cut(lines.Text(), " ")
			size, err := strconv.ParseInt(digits, 10, 64)
			if err != nil {
				return task.Wrap(task.Internal, err, "git does not tell the size of a file")
			}
			if size > l.options.MaxDiff {
				return &tooLargeError{names[hash]}
			}
			if room -= size; room < 0 {
				return errTooLarge
			}
		}
		return lines.Err()
	})
}

// fields reads texts that each end with a zero byte.
func fields(from *bufio.Reader, take func(text string) error) error {
	for {
		text, err := from.ReadString(0)
		if errors.Is(err, io.EOF) && text == "" {
			return nil
		}
		if err != nil {
			return err
		}
		if err := take(strings.TrimSuffix(text, "\x00")); err != nil {
			return err
		}
	}
}

// differences are the arguments by which two trees are compared: as they are, whatever
// attributes and settings say.
func differences(base, commit string, more ...string) []string {
	args := append([]string{"diff-tree", "-r", "--irreversible-delete", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none"}, more...)
	return append(args, "--end-of-options", base, commit)
}

// entries reads which files differ.
func (l *look) entries(ctx context.Context, base, commit string) (map[string]entry, error) {
	all := map[string]entry{}
	var next *entry
	err := l.read(ctx, maxNames, differences(base, commit, "--raw", "--no-abbrev", "-z"), func(from *bufio.Reader) error {
		return fields(from, func(text string) error {
			if next != nil {
				all[text], next = *next, nil
				if len(all) > l.options.MaxFiles {
					return errTooLarge
				}
				return nil
			}
			parts := strings.Fields(strings.TrimPrefix(text, ":"))
			if len(parts) != 5 {
				return task.Errorf(task.Internal, "git describes a difference in %d words", len(parts))
			}
			next = &entry{oldMode: parts[0], newMode: parts[1], oldHash: parts[2], newHash: parts[3]}
			return nil
		})
	})
	return all, err
}

// names lists the files of a commit.
func (l *look) names(ctx context.Context, commit string) ([]string, error) {
	var all []string
	err := l.read(ctx, 4*maxNames, []string{"ls-tree", "-r", "-z", "--name-only", "--full-tree", commit}, func(from *bufio.Reader) error {
		return fields(from, func(text string) error {
			all = append(all, text)
			return nil
		})
	})
	return all, err
}

// commit is a commit as git reads it. A commit can have further lines that look as if
// they named parents.
type commit struct {
	hash    string
	parents []string
}

// commits lists the commits that the forge does not have.
func (l *look) commits(ctx context.Context) ([]commit, error) {
	var all []commit
	args := append([]string{"rev-list", "--no-commit-header", "--format=%H %P", l.Commit, "--not"}, l.Public...)
	err := l.read(ctx, maxNames, args, func(from *bufio.Reader) error {
		lines := bufio.NewScanner(from)
		for lines.Scan() {
			parts := strings.Fields(lines.Text())
			if len(parts) == 0 {
				return task.Errorf(task.Internal, "git lists a commit without a hash")
			}
			if all = append(all, commit{parts[0], parts[1:]}); len(all) > MaxCommits {
				return errTooLarge
			}
		}
		return lines.Err()
	})
	return all, err
}

// maxMessage is how long a commit may be without its tree.
const maxMessage = 1 << 20

// message is all that a commit says in words: its message, who made it, and headers that
// nobody knows.
func (l *look) message(ctx context.Context, commit string) (text string, err error) {
	err = l.read(ctx, maxMessage, []string{"cat-file", "commit", commit}, func(from *bufio.Reader) error {
		whole, err := io.ReadAll(from)
		text = string(whole)
		for strings.HasPrefix(text, "tree ") || strings.HasPrefix(text, "parent ") {
			_, text, _ = strings.Cut(text, "\n")
		}
		return err
	})
	return text, err
}
