package contexts

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// syncFolder makes what was made, renamed or removed in a folder durable. Windows keeps its
// own journal of that, and refuses to sync a folder.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	opened, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}

// makeFolder makes a folder durably.
func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(dir))
}

// moveFolder renames a folder durably. It does not replace one that is there.
func moveFolder(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return os.ErrExist
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return errors.Join(syncFolder(filepath.Dir(to)), syncFolder(filepath.Dir(from)))
}

// replaceFile puts the content in the place of the file: whoever looks, also
// after a crash, sees all of the old or all of the new.
func replaceFile(name string, content []byte) error {
	if err := renameOver(name, content); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(name))
}

// renameOver is replaceFile, but that the new name may still be lost by a crash.
func renameOver(name string, content []byte) error {
	making, err := os.CreateTemp(filepath.Dir(name), ".making-*")
	if err != nil {
		return err
	}
	_, err = making.Write(content)
	err = errors.Join(err, making.Sync(), making.Close())
	if err == nil {
		err = os.Rename(making.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(making.Name()))
	}
	return nil
}

func replaceJSON(name string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(name, append(content, '\n'))
}

func readJSON(name string, into any) error {
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, into)
}

// removeMaking removes what a crash has left of files that were being made.
func removeMaking(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, ".making-*"))
	if err != nil {
		return err
	}
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}
