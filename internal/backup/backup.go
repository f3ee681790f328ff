package backup

import (
	"encoding/json"
	"io/fs"
	"time"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// Format is the version of the file.
const Format = 1

const (
	manifestName = "manifest.json"
	endName      = "end"
	// maxManifest is how many bytes a manifest may have, and maxEntries how many files are in a
	// backup: two for each repository.
	maxManifest = 32 << 20
	maxEntries  = 100_000
	maxSize     = 1 << 40 // bytes of one file
)

// Manifest says what is in a backup.
type Manifest struct {
	Format    int       `json:"format"`
	Program   string    `json:"program"`  // version of the program that wrote it
	Schema    int64     `json:"schema"`   // of the database
	Database  string    `json:"database"` // sqlite or postgres; that of PostgreSQL is not in it
	CreatedAt time.Time `json:"created_at"`
	Entries   []Entry   `json:"entries"`
}

// Entry is one file in a backup.
type Entry struct {
	Name   string `json:"name"` // with slashes
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Bytes is the size of all files together.
func (m Manifest) Bytes() (all int64) {
	for _, entry := range m.Entries {
		all += entry.Size
	}
	return all
}

var hashPattern = lazyregexp.New(`^[0-9a-f]{64}$`)

// parse reads a manifest, and refuses one that is not whole or names files outside.
func parse(text []byte) (m Manifest, err error) {
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return m, task.Wrap(task.Invalid, err, "its manifest cannot be read")
	}
	if version.Format != Format {
		return m, task.Errorf(task.Invalid, "its format is %d, and this program reads %d", version.Format, Format).
			WithHint("use the version of toryo that wrote it")
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, task.Wrap(task.Invalid, err, "its manifest cannot be read")
	}
	if len(m.Entries) > maxEntries {
		return m, task.Errorf(task.TooLarge, "its manifest names %d files; %d are allowed", len(m.Entries), maxEntries)
	}
	seen := map[string]bool{}
	for _, entry := range m.Entries {
		bad := !fs.ValidPath(entry.Name) || entry.Name == "." || entry.Size < 0 || entry.Size > maxSize || !hashPattern.MatchString(entry.SHA256) || seen[entry.Name]
		if bad {
			return m, task.Errorf(task.Invalid, "its manifest has a bad entry %q", entry.Name)
		}
		seen[entry.Name] = true
	}
	return m, nil
}
