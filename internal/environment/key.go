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

// Source says whose files an environment is made from. Set-up runs them: what a project's
// scripts do is in the environment, and the manifests do not say what they do. So what
// was kept is used for the same source only.
type Source struct {
	// Project is the repository, with its forge and where that is. Without it
	// nothing is kept and nothing that was kept is used.
	Project string
	// Change names what the files are besides what the project itself has, such as a
	// pull request and its commit, or the work of a task; empty if they are exactly
	// those that the project's own people have put into its base branch. What is kept
	// of a change is used for that change and for nothing else. A change may start
	// from what was kept of the project itself.
	Change string
}

// snapshotKey names an environment by everything that it was made from: source, engine
// and image, set-up commands, and the contents of manifests and lock files. Two
// that are made from the same have the same key.
func (t *Table) snapshotKey(source Source, engine, identity string, selected Selection, project fs.FS) (string, error) {
	hash := sha256.New()
	head, err := json.Marshal([]any{source.Project, source.Change, engine, identity, selected.Name, selected.SetupCommands})
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
