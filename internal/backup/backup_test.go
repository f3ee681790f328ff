package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// written writes a backup with two files.
func written(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "toryo.backup")
	making, err := Begin(file)
	must(t, err)
	rows := make([]byte, 50_000)
	_, err = rand.NewChaCha8([32]byte{}).Read(rows)
	must(t, err)
	must(t, making.AddText(t.Context(), "database/toryo.db", rows))
	must(t, making.AddText(t.Context(), "git/board/a/b.git.pack", []byte("PACK")))
	_, err = making.Write(t.Context(), Manifest{Program: "1.2.3", Schema: 20, Database: "sqlite", CreatedAt: time.Unix(1_800_000_000, 0)})
	must(t, err)
	must(t, making.Close())
	return file
}

func accepted(Manifest) error { return nil }

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	file, into := written(t), t.TempDir()
	var asked Manifest
	m, err := Read(t.Context(), file, into, func(m Manifest) error {
		asked = m
		return nil
	})
	must(t, err)
	if asked.Schema != 20 || m.Format != Format || len(m.Entries) != 2 || m.Bytes() != 50_004 {
		t.Errorf("the manifest is %+v, and accept was asked about %+v", m, asked)
	}
	text, err := os.ReadFile(filepath.Join(into, "git", "board", "a", "b.git.pack"))
	if err != nil || string(text) != "PACK" {
		t.Errorf("a file has %q, %v", text, err)
	}
	// Nobody else reads it, and nothing is left beside it.
	left, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the backup is %v, %v", left, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("the backup is %v, %v", info.Mode(), err)
	}
	if _, err := Begin(file); task.CodeOf(err) != task.Conflict {
		t.Errorf("a second backup of the same name: %v", err)
	}
}

// A file that came while the backup was made stays.
func TestAFileThatCameMeanwhileStays(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "toryo.backup")
	making, err := Begin(file)
	must(t, err)
	must(t, os.WriteFile(file, []byte("other"), 0o600))
	if _, err := making.Write(t.Context(), Manifest{}); task.CodeOf(err) != task.Conflict {
		t.Errorf("writing it: %v", err)
	}
	must(t, making.Close())
	if text, err := os.ReadFile(file); err != nil || string(text) != "other" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

// What backups that were killed have left goes with the next one. One that is being made stays.
func TestWhatWasLeftGoes(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	killed := filepath.Join(folder, folderPrefix+"1")
	must(t, os.MkdirAll(filepath.Join(killed, "database"), 0o700))
	must(t, os.WriteFile(filepath.Join(killed, lockName), nil, 0o600))
	other := filepath.Join(folder, folderPrefix+"notes") // nobody knows whose it is
	must(t, os.Mkdir(other, 0o700))
	one, err := Begin(filepath.Join(folder, "one"))
	must(t, err)
	two, err := Begin(filepath.Join(folder, "two"))
	must(t, err)
	for dir, there := range map[string]bool{killed: false, other: true, one.dir: true, two.dir: true} {
		if _, err := os.Stat(dir); (err == nil) != there {
			t.Errorf("%s: %v", dir, err)
		}
	}
	must(t, one.Close())
	must(t, two.Close())
}

// What could not be read is not written.
func TestBackupsThatCouldNotBeRead(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "toryo.backup")
	making, err := Begin(file)
	must(t, err)
	must(t, making.AddText(t.Context(), "a/b", nil))
	must(t, making.AddText(t.Context(), "a/b", nil))
	if _, err := making.Write(t.Context(), Manifest{}); task.CodeOf(err) != task.Invalid {
		t.Errorf("with a file twice: %v", err)
	}
	must(t, making.Close())
	if _, err := os.Stat(file); err == nil {
		t.Error("it is written")
	}
}

// A backup that was cut off anywhere is not taken for whole. One with a changed bit is not either,
// unless the same comes out of it: compressed data can be written in several ways.
func TestDamagedBackups(t *testing.T) {
	t.Parallel()
	path := written(t)
	whole, err := os.ReadFile(path)
	must(t, err)
	good, err := Read(t.Context(), path, t.TempDir(), accepted)
	must(t, err)
	try := func(what string, at int, content []byte) {
		file := filepath.Join(t.TempDir(), "damaged")
		must(t, os.WriteFile(file, content, 0o600))
		m, err := Read(t.Context(), file, t.TempDir(), accepted)
		if err == nil && (what != "flipped" || !reflect.DeepEqual(m, good)) {
			t.Errorf("%s at %d of %d: it is read as %+v", what, at, len(whole), m)
		}
	}
	const harmless = 10 // the header of gzip has a time and a system, which say nothing
	for at := 0; at < len(whole); at += 1 + len(whole)/150 {
		try("cut", at, whole[:at])
		if at < harmless {
			continue
		}
		flipped := bytes.Clone(whole)
		flipped[at] ^= 0x10
		try("flipped", at, flipped)
	}
	try("cut", len(whole)-1, whole[:len(whole)-1])
	try("longer", len(whole), append(bytes.Clone(whole), 'x'))
	try("twice", len(whole), append(bytes.Clone(whole), whole...))
}

// file is an entry of a tar file that somebody made.
type file struct {
	header  tar.Header
	content string
}

func packed(t *testing.T, files ...file) string {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, one := range files {
		header := one.header
		header.Size, header.Mode = int64(len(one.content)), 0o777
		must(t, archive.WriteHeader(&header))
		_, err := archive.Write([]byte(one.content))
		must(t, err)
	}
	must(t, archive.Close())
	must(t, zipped.Close())
	path := filepath.Join(t.TempDir(), "made")
	must(t, os.WriteFile(path, out.Bytes(), 0o600))
	return path
}

// made is a backup with a manifest that names the entries, and then the files.
func made(t *testing.T, entries []Entry, files ...file) string {
	t.Helper()
	text, err := json.Marshal(Manifest{Format: Format, Entries: entries})
	must(t, err)
	all := append([]file{{tar.Header{Name: manifestName}, string(text)}}, files...)
	return packed(t, append(all, file{tar.Header{Name: endName}, string(endOf(text))})...)
}

func entryOf(name, content string) Entry {
	return Entry{Name: name, Size: int64(len(content)), SHA256: strings.TrimSpace(string(endOf([]byte(content))))}
}

// What is in a backup that somebody made reaches nothing outside of the folder.
func TestHostileBackups(t *testing.T) {
	t.Parallel()
	const text = "hello"
	good := entryOf("a/b", text)
	regular := func(name string) file { return file{tar.Header{Name: name}, text} }
	short := good
	short.Size = 3
	link := file{tar.Header{Name: "a/b", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, ""}
	for name, path := range map[string]string{
		"goes up":                 made(t, []Entry{entryOf("../x", text)}, regular("../x")),
		"goes up inside":          made(t, []Entry{entryOf("a/../../x", text)}, regular("a/../../x")),
		"absolute":                made(t, []Entry{entryOf("/tmp/x", text)}, regular("/tmp/x")),
		"empty":                   made(t, []Entry{entryOf("", text)}, regular("")),
		"the folder itself":       made(t, []Entry{entryOf(".", text)}, regular(".")),
		"twice":                   made(t, []Entry{good, good}, regular("a/b"), regular("a/b")),
		"file as folder":          made(t, []Entry{good, entryOf("a/b/c", text)}, regular("a/b"), regular("a/b/c")),
		"another name":            made(t, []Entry{good}, regular("../b")),
		"a link":                  made(t, []Entry{entryOf("a/b", "")}, link),
		"a device":                made(t, []Entry{entryOf("a/b", "")}, file{tar.Header{Name: "a/b", Typeflag: tar.TypeChar}, ""}),
		"a folder":                made(t, []Entry{entryOf("a/b", "")}, file{tar.Header{Name: "a/b", Typeflag: tar.TypeDir}, ""}),
		"more bytes":              made(t, []Entry{short}, regular("a/b")),
		"other bytes":             made(t, []Entry{good}, file{tar.Header{Name: "a/b"}, "jello"}),
		"one that is not listed":  made(t, []Entry{good}, regular("a/b"), regular("a/c")),
		"one that is missing":     made(t, []Entry{good}),
		"no manifest":             packed(t, regular("a/b")),
		"nothing":                 packed(t),
		"no end":                  packed(t, file{tar.Header{Name: manifestName}, `{"format": 1}`}),
		"another format":          packed(t, file{tar.Header{Name: manifestName}, `{"format": 2}`}),
		"a manifest that is none": packed(t, file{tar.Header{Name: manifestName}, `[]`}),
		"a large manifest":        packed(t, file{tar.Header{Name: manifestName}, strings.Repeat(" ", maxManifest+1)}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			into := filepath.Join(parent, "into")
			must(t, os.Mkdir(into, 0o700))
			if _, err := Read(t.Context(), path, into, accepted); task.CodeOf(err) == task.Internal || err == nil {
				t.Errorf("it is read, or not for what is wrong: %v", err)
			}
			must(t, filepath.WalkDir(parent, func(path string, entry fs.DirEntry, err error) error {
				if err == nil && !strings.HasPrefix(path, into) && path != parent {
					t.Errorf("%s came out", path)
				}
				if info, failed := entry.Info(); failed == nil && info.Mode().Type()&^fs.ModeDir != 0 {
					t.Errorf("%s is %v", path, info.Mode())
				}
				return err
			}))
		})
	}
}
