package workspace

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toryo-dev/toryo/internal/task"
)

// Commits are made here, without git: there is one after each step that changes a file, and
// starting git for it takes longer than all else of the step. What is written are single
// objects as git writes them: a compressed file for each, named by the hash of its content.

// folder is the mode of a folder in a tree.
const folder = "40000"

// deflaters compress objects. They are large and are used again.
var deflaters = sync.Pool{New: func() any {
	deflater, err := zlib.NewWriterLevel(io.Discard, zlib.BestSpeed)
	if err != nil {
		panic(err) // the level exists
	}
	return deflater
}}

// writeObject writes an object of the size and returns its name. What the content has beyond
// the size is left out; content that is shorter is errShrunk.
func (w *Workspace) writeObject(kind string, size int64, content io.Reader) (name string, err error) {
	objects := filepath.Join(w.dir, "objects")
	made, err := os.CreateTemp(objects, "tmp_obj_*")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(made.Name())
		}
	}()
	sum, err := w.deflate(made, kind, size, content)
	err = cmp.Or(err, made.Close())
	if err != nil {
		return "", err
	}
	name = hex.EncodeToString(sum)
	if err := os.MkdirAll(filepath.Join(objects, name[:2]), 0o700); err != nil {
		return "", err
	}
	return name, os.Rename(made.Name(), filepath.Join(objects, name[:2], name[2:]))
}

// deflate writes the compressed form of an object and returns the hash of the plain one.
func (w *Workspace) deflate(to io.Writer, kind string, size int64, content io.Reader) ([]byte, error) {
	deflater, _ := deflaters.Get().(*zlib.Writer) // nothing else is in it
	defer deflaters.Put(deflater)
	deflater.Reset(to)
	sum := w.hasher()
	both := io.MultiWriter(deflater, sum)
	if _, err := fmt.Fprintf(both, "%s %d\x00", kind, size); err != nil {
		return nil, err
	}
	switch n, err := io.Copy(both, io.LimitReader(content, size)); {
	case err != nil:
		return nil, err
	case n < size:
		return nil, errShrunk
	}
	return sum.Sum(nil), deflater.Close()
}

// writeTrees writes the folders in which the files differ from those before, and returns the
// name of the one at the top. The others are as folders has them.
func (w *Workspace) writeTrees(files, before listing, folders map[string]string) (string, error) {
	differ := map[string]bool{"": true}
	for name, now := range files {
		if before[name] != now {
			markFolders(differ, name)
		}
	}
	for name := range before {
		if _, stays := files[name]; !stays {
			markFolders(differ, name)
		}
	}
	trees := map[string]listing{"": {}} // by folder, what is in it
	for name, entry := range files {
		for !differ[parent(name)] {
			name = parent(name)
			entry = file{folder, folders[name]}
		}
		put(trees, name, entry)
	}
	deepest := func(a, b string) int { return cmp.Or(strings.Count(b, "/")-strings.Count(a, "/"), len(b)-len(a)) }
	for _, at := range slices.SortedFunc(maps.Keys(differ), deepest) {
		content, err := treeOf(trees[at])
		if err != nil {
			return "", err
		}
		if at != "" && len(content) == 0 {
			continue
		}
		hash, err := w.writeObject("tree", int64(len(content)), bytes.NewReader(content))
		if err != nil || at == "" {
			return hash, err
		}
		put(trees, at, file{folder, hash})
	}
	return "", nil // not reached: the top comes last
}

// markFolders marks the folders that a file is in.
func markFolders(marked map[string]bool, name string) {
	for at := parent(name); !marked[at]; at = parent(at) {
		marked[at] = true
	}
}

// parent is the folder of a name as git has it; "" is the one at the top. Trees of others may
// have names such as "..", which stay what they are.
func parent(name string) string { return name[:max(strings.LastIndexByte(name, '/'), 0)] }

// put puts an entry into its folder. A file and a folder of one name are found when one became
// the other while the files were listed: the folder counts.
func put(trees map[string]listing, name string, entry file) {
	at := parent(name)
	if trees[at] == nil {
		trees[at] = listing{}
	}
	base := strings.TrimPrefix(name[len(at):], "/")
	if entry.mode == folder || trees[at][base].mode != folder {
		trees[at][base] = entry
	}
}

// treeOf is the content of a tree. Folders are sorted as if their names ended in a slash.
func treeOf(entries listing) ([]byte, error) {
	key := func(name string) string {
		if entries[name].mode == folder {
			return name + "/"
		}
		return name
	}
	var content bytes.Buffer
	for _, name := range slices.SortedFunc(maps.Keys(entries), func(a, b string) int { return cmp.Compare(key(a), key(b)) }) {
		hash, err := hex.DecodeString(entries[name].hash)
		if err != nil || len(hash) == 0 {
			return nil, task.Errorf(task.Internal, "%s has no name in the history", quote(name))
		}
		fmt.Fprintf(&content, "%s %s\x00%s", entries[name].mode, name, hash)
	}
	return content.Bytes(), nil
}

// writeCommit writes a commit and has the ref for work lead to it.
func (w *Workspace) writeCommit(tree string, parents []string, message string) (string, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "tree %s\n", tree)
	for _, one := range parents {
		fmt.Fprintf(&text, "parent %s\n", one)
	}
	by := fmt.Sprintf("%s <%s> %d +0000", w.options.Author.Name, w.options.Author.Email, w.now().Unix())
	fmt.Fprintf(&text, "author %s\ncommitter %s\n\n%s", by, by, strings.ReplaceAll(message, "\x00", ""))
	commit, err := w.writeObject("commit", int64(text.Len()), strings.NewReader(text.String()))
	if err != nil {
		return "", err
	}
	ref := filepath.Join(w.dir, filepath.FromSlash(refWork))
	if err := os.MkdirAll(filepath.Dir(ref), 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(ref+".new", []byte(commit+"\n"), 0o600); err != nil { //nolint:forbidigo // git's own folder, which no sandbox has
		return "", err
	}
	return commit, os.Rename(ref+".new", ref)
}
