package testkit

import (
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
)

// WantOwner checks that a folder and everything in it, which is at least so much, belongs to a user
// and to the group with the same number.
func WantOwner(t *testing.T, folder string, user, least int) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		seen++
		if stat, is := info.Sys().(*syscall.Stat_t); !is || int(stat.Uid) != user || int(stat.Gid) != user {
			t.Errorf("%s is not of the user %d", path, user)
		}
		return nil
	})
	if err != nil || seen < least {
		t.Errorf("%d files and folders were seen: %v", seen, err)
	}
}
