package environment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

const keyDepth = 6

// snapshotKey names an environment by everything that it was made from: engine
// and image, set-up commands, and the contents of manifests and lock files. Two
// that are made from the same have the same key.
func (t *Table) snapshotKey(engine, identity string, selected Selection, project fs.FS) (string, error) {
	hash := sha256.New()
	head, err := json.Marshal([]any{engine, identity, selected.Name, selected.SetupCommands})
	if err != nil {
		return "", err
	}
	hash.Write(head)
	err = fs.WalkDir(project, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains(skipped, entry.Name()) || strings.Count(name, "/") >= keyDepth {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || !t.isMarker(name) {
			return nil
		}
		content, err := fs.ReadFile(project, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(hash, "%s %d\n", name, len(content))
		hash.Write(content)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read the manifests: %w", err)
	}
	return "env-" + hex.EncodeToString(hash.Sum(nil))[:40], nil
}

// isMarker reports whether the file, in whatever folder, is a marker.
func (t *Table) isMarker(file string) bool {
	name := path.Base(file)
	inFolder := path.Join(path.Base(path.Dir(file)), name)
	return slices.ContainsFunc(t.entries, func(entry Environment) bool {
		return slices.ContainsFunc(entry.Markers, func(marker string) bool {
			return matchesName(marker, name) || matchesName(marker, inFolder)
		})
	})
}
