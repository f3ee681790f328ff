package guest

import (
	"errors"
	"path/filepath"

	"github.com/toryo-dev/toryo/internal/workdir"
)

// The folder for the state is in the home, which commands can write: what they put
// there in place of our files must not make the guest wait, nor be read whole.

const (
	stateFile   = "shell"
	commandFile = "command"
	// longestState is how much a shell may leave for the next.
	longestState = 4 << 20
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

// prepareState writes a command to a file, and removes what cannot be a state.
func (s *server) prepareState(asked request) (string, error) {
	folder, err := s.stateFolder()
	if err != nil {
		return "", err
	}
	defer func() { _ = folder.Close() }()
	for _, name := range []string{commandFile, newStateOf(asked.Session)} { // the latter is what a killed shell left
		if err := folder.RemoveAll(name); err != nil {
			return "", err
		}
	}
	state := stateOf(asked.Session)
	if info, err := folder.Lstat(state); err == nil && (!info.Mode().IsRegular() || info.Size() > longestState) {
		if err := folder.RemoveAll(state); err != nil {
			return "", err
		}
	}
	file, err := folder.Create(commandFile, 0o600)
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(string(asked.Command) + "\n")
	return filepath.Join(s.options.State, commandFile), errors.Join(err, file.Close())
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
	if isWhole(folder, newStateOf(session)) {
		_ = folder.Root().Rename(newStateOf(session), stateOf(session)) // or the older state holds
	}
}

// isWhole reports whether a state ends as it should.
func isWhole(folder *workdir.Dir, state string) bool {
	file, info, err := folder.OpenFile(state)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }() // it was only read
	ending := make([]byte, len(stateMark)+1)
	if info.Size() < int64(len(ending)) || info.Size() > longestState {
		return false
	}
	_, err = file.ReadAt(ending, info.Size()-int64(len(ending)))
	return err == nil && string(ending) == stateMark+"\n"
}
