package site

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	"github.com/google/uuid"
)

// addressFile says where the server of a data directory listens, for commands on the same
// machine: the address may be none that the configuration names.
const addressFile = "server.json"

// maxAddressFile is more than such a file has.
const maxAddressFile = 4 << 10

// published is what the file says.
type published struct {
	URL     string `json:"url"`
	Process string `json:"process"` // the id of the server in the folder of processes
}

// publishAddress writes the file. Withdraw removes it, and may always be called.
func publishAddress(running Instance) (withdraw func(), err error) {
	file := filepath.Join(running.Config.DataDir, addressFile)
	text, err := json.Marshal(published{URL: running.local, Process: running.process})
	if err != nil {
		return func() {}, err
	}
	draft, err := os.CreateTemp(running.Config.DataDir, ".server-*") // readable for its user only
	if err != nil {
		return func() {}, err
	}
	_, err = draft.Write(text)
	err = errors.Join(err, draft.Close())
	if err == nil {
		err = os.Rename(draft.Name(), file)
	}
	if err != nil {
		return func() {}, errors.Join(err, os.Remove(draft.Name()))
	}
	return func() { _ = os.Remove(file) }, nil // one that stays says nothing, when the process has ended
}

// RunningServer is the address of the server that runs on a data directory of this machine.
// It is found if the server lives, for certain: the kernel keeps the lock of a process on its
// file for as long as that.
func RunningServer(dataDir string) (url string, found bool) {
	file, err := os.Open(filepath.Join(dataDir, addressFile))
	if err != nil {
		return "", false
	}
	defer func() { _ = file.Close() }() // nothing was written
	text, err := io.ReadAll(io.LimitReader(file, maxAddressFile))
	if err != nil {
		return "", false
	}
	var says published
	if json.Unmarshal(text, &says) != nil || uuid.Validate(says.Process) != nil || !lives(filepath.Join(dataDir, processFolder, says.Process)) {
		return "", false
	}
	return says.URL, says.URL != ""
}

// lives reports whether a process has its file locked.
func lives(file string) bool {
	if _, err := os.Lstat(file); err != nil {
		return false
	}
	lock := flock.New(file, flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	return errors.Join(err, lock.Close()) == nil && !free
}
