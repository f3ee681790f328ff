package testreport

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// What is read of the _test.go files of a project at most. With more, no report of its
// tests is complete.
const (
	maxTestFiles = 200_000
	maxTestBytes = 1 << 30
)

var goFunction = lazyregexp.New(`^func ((?:Test|Fuzz|Example|Benchmark)\w*)\(`)

// goFunctions are the test functions in the project's files; nil if the project is not
// known.
func goFunctions(project fs.FS) (map[string]bool, error) {
	if project == nil {
		return nil, nil
	}
	known, files, left := map[string]bool{}, 0, int64(maxTestBytes)
	err := fs.WalkDir(project, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "node_modules", "testdata"}, entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		if files++; files > maxTestFiles {
			return fmt.Errorf("there are more than %d test files", maxTestFiles)
		}
		read, err := readGoFunctions(project, name, left, known)
		left -= read
		if entry.Type()&fs.ModeSymlink != 0 { // one that leads nowhere has no tests
			return nil
		}
		return err
	})
	return known, err
}

// readGoFunctions reads one file line by line and returns how many bytes it has. Go
// leaves out what is no regular file.
func readGoFunctions(project fs.FS, name string, most int64, known map[string]bool) (int64, error) {
	if info, err := fs.Stat(project, name); errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return 0, nil
	}
	file, err := project.Open(name)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }() // it was only read
	limited := &io.LimitedReader{R: file, N: most + 1}
	lines := bufio.NewReader(limited)
	for inside := false; ; {
		text, more, err := lines.ReadLine() // the beginning of a long line, then its parts
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		if found := goFunction.FindSubmatch(text); found != nil && !inside {
			known[string(found[1])] = true
		}
		inside = more
	}
	if limited.N <= 0 {
		return 0, errTooLong
	}
	return most + 1 - limited.N, nil
}
