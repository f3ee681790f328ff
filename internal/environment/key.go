package environment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

const (
	keyDepth        = 6
	longestManifest = 64 << 20
)

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
// and image, the projects with their commands of set-up and those that fill caches, and the
// contents of manifests and lock files. Two that are made from the same have the same key. The
// commands of verification run after it is kept.
func (t *Table) snapshotKey(source Source, engine, identity string, projects []*ProjectSetup, manifests string) (string, error) {
	hash := sha256.New()
	made := []any{source.Project, source.Change, engine, identity}
	for _, p := range projects {
		one := []any{p.Directory, p.EnvironmentType, p.Session, p.SetupCommands}
		if entry, _ := t.Find(p.EnvironmentType); len(entry.Caches) > 0 {
			one = append(one, entry.Caches)
		}
		made = append(made, one)
	}
	head, err := json.Marshal(made)
	if err != nil {
		return "", err
	}
	hash.Write(head)
	hash.Write([]byte(manifests))
	return "env-" + hex.EncodeToString(hash.Sum(nil))[:40], nil
}

// manifestsOf are the names, lengths and hashes of all manifests and lock files of a project.
func (t *Table) manifestsOf(project fs.FS) (string, error) {
	var found strings.Builder
	markers := t.markers()
	err := fs.WalkDir(project, ".", func(name string, entry fs.DirEntry, err error) error { //nolint:forbidigo // over files of package workdir
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains(skipped, entry.Name()) || strings.Count(name, "/") >= keyDepth {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || !markers.has(name) {
			return nil
		}
		return addContent(&found, project, name)
	})
	if err != nil {
		return "", fmt.Errorf("read the manifests: %w", err)
	}
	return found.String(), nil
}

// addContent adds the name and the content of a file, however long.
func addContent(hash io.Writer, project fs.FS, name string) error {
	file, err := project.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	content := sha256.New()
	length, err := io.Copy(content, io.LimitReader(file, longestManifest+1))
	if err != nil {
		return err
	}
	if length > longestManifest {
		return task.Errorf(task.TooLarge, "%s is longer than the %d MB that a manifest may have", name, longestManifest>>20)
	}
	_, err = fmt.Fprintf(hash, "%s %d %x\n", name, length, content.Sum(nil))
	return err
}

// markers are the names of marker files, alone or with the folder that they are in.
func (t *Table) markers() fileNames {
	names := fileNames{exact: map[string]bool{}}
	for _, entry := range t.entries {
		names = names.add(entry.Markers)
	}
	return names
}

// has reports whether the file, in whatever folder, is one of them.
func (n fileNames) has(file string) bool {
	name := path.Base(file)
	return n.match(name) || n.match(path.Join(path.Base(path.Dir(file)), name))
}
