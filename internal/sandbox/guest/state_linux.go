package guest

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/toryo-dev/toryo/internal/workdir"
)

// The folder for the state is in the home, which commands can write: what they put
// there in place of our files must not make the guest wait, nor be read whole.

const (
	stateFile   = "shell"
	commandFile = "command"
	// longestState is how much a shell may leave for the next.
	longestState = 4 << 20
	// longestLeft is how much that may be with what the shell has of its own, such as what it matched last.
	longestLeft = 2 * longestState
)

// stateOf is the file with the state of a session.
func stateOf(session string) string {
	if session == "" {
		return stateFile
	}
	return stateFile + "-" + session
}

// newStateOf is the file to which a shell writes the state that it leaves.
func newStateOf(session string) string { return stateOf(session) + ".new" }

// prepareState writes a command to a file, empties the one for the state that it will leave, and
// removes what cannot be a state.
func (s *server) prepareState(asked request) (string, error) {
	folder, err := s.stateFolder()
	if err != nil {
		return "", err
	}
	defer func() { _ = folder.Close() }()
	left, err := emptyFile(folder, newStateOf(asked.Session)) // a killed shell may have left something
	if err == nil {
		err = left.Close()
	}
	if err != nil {
		return "", err
	}
	state := stateOf(asked.Session)
	if info, err := folder.Lstat(state); err == nil && (!info.Mode().IsRegular() || info.Size() > longestState) {
		if err := folder.RemoveAll(state); err != nil {
			return "", err
		}
	}
	file, err := emptyFile(folder, commandFile)
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(string(asked.Command) + "\n")
	return filepath.Join(s.options.State, commandFile), errors.Join(err, file.Close())
}

// emptyFile opens a file to write that has nothing in it: the one that is there, which costs
// less than another one, or one that is made in place of what has another name or another mode.
func emptyFile(folder *workdir.Dir, name string) (*os.File, error) {
	if info, err := folder.Lstat(name); err == nil && info.Mode() == 0o600 && linksOf(info) == 1 {
		if file, err := folder.Overwrite(name, 0o600); err == nil {
			return file, nil
		}
	}
	if err := folder.RemoveAll(name); err != nil {
		return nil, err
	}
	return folder.Create(name, 0o600)
}

// linksOf is how many names a file has.
func linksOf(info fs.FileInfo) uint64 {
	if status, is := info.Sys().(*syscall.Stat_t); is {
		return uint64(status.Nlink) //nolint:unconvert // it is smaller on some architectures
	}
	return 0
}

// stateFolder opens the folder, and makes it anew where something else is.
func (s *server) stateFolder() (*workdir.Dir, error) {
	above, err := workdir.Open(filepath.Dir(s.options.State))
	if err != nil {
		return nil, err
	}
	defer func() { _ = above.Close() }()
	name := filepath.Base(s.options.State)
	if info, err := above.Lstat(name); err != nil || !info.IsDir() {
		if err := errors.Join(above.RemoveAll(name), above.Mkdir(name, 0o700)); err != nil {
			return nil, err
		}
	}
	return above.Sub(name)
}

// keepState takes over the state that the shell left, if it is whole.
func (s *server) keepState(session string) {
	folder, err := s.stateFolder()
	if err != nil {
		return // the older state holds, if there is one
	}
	defer func() { _ = folder.Close() }()
	kept, err := folder.ReadFile(newStateOf(session), longestLeft)
	if err != nil || !bytes.HasSuffix(kept, []byte(stateMark+"\n")) {
		return // it was killed, for example
	}
	if s.isBash() {
		kept = withoutOwn(kept)
	}
	if len(kept) > longestState || hasState(folder, stateOf(session), kept) {
		return // most commands change nothing of it
	}
	file, err := emptyFile(folder, newStateOf(session))
	if err != nil {
		return
	}
	_, err = file.Write(kept)
	if err = errors.Join(err, file.Close()); err == nil {
		_ = folder.Root().Rename(newStateOf(session), stateOf(session)) // or the older state holds
	}
}

// hasState reports whether a state is in its file.
func hasState(folder *workdir.Dir, file string, state []byte) bool {
	info, err := folder.Lstat(file)
	if err != nil || info.Size() != int64(len(state)) {
		return false
	}
	older, err := folder.ReadFile(file, longestState)
	return err == nil && bytes.Equal(state, older)
}
