package contexts

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/toryo-dev/toryo/internal/task"
)

// Recording is a run as its folder has it.
type Recording struct {
	Metadata
	Folder string // running, paused or completed
	Lines  []Line
	// Torn is how many bytes at the end of the journal are worth nothing. A crash
	// leaves some.
	Torn int64
}

// Read reads a run from the folder of all, for looking at it; nothing is changed.
// The uuid may be cut short as long as one run only begins with it. It fails with
// NotFound if there is no such run.
func Read(dir, id string) (Recording, error) {
	folder, name, err := locate(dir, id)
	if err != nil {
		return Recording{}, err
	}
	run := filepath.Join(dir, folder, name)
	recording := Recording{Folder: folder}
	if err := readJSON(filepath.Join(run, metadataFile), &recording.Metadata); err != nil {
		return Recording{}, task.Wrap(task.Invalid, err, "the metadata of the run cannot be read")
	}
	if recording.Lines, recording.Torn, err = readLines(filepath.Join(run, journalFile)); err != nil {
		return Recording{}, task.Wrap(task.DataDir, err, "the journal of the run cannot be read")
	}
	return recording, nil
}

// shortest is how much of a uuid has to be given.
const shortest = 4

// locate finds the one run whose uuid begins like this.
func locate(dir, id string) (folder, name string, err error) {
	id = strings.ToLower(id)
	for _, in := range folders {
		entries, err := os.ReadDir(filepath.Join(dir, in))
		if err != nil && !os.IsNotExist(err) {
			return "", "", task.Wrap(task.DataDir, err, "cannot list the runs")
		}
		for _, entry := range entries {
			if !entry.IsDir() || uuid.Validate(entry.Name()) != nil || len(id) < shortest || !strings.HasPrefix(entry.Name(), id) {
				continue
			}
			if name != "" {
				return "", "", task.Errorf(task.Invalid, "several runs begin with %q", id).WithHint("give more of the uuid")
			}
			folder, name = in, entry.Name()
		}
	}
	if name == "" {
		return "", "", task.Errorf(task.NotFound, "there is no run %q in %s", id, dir).WithHint("its folders running, paused and completed name the runs that there are")
	}
	return folder, name, nil
}

// ReadLast reads the run that began last of the task that is named; see [task.ParseName]. It
// fails with NotFound if there is none, and with Invalid if the name can mean several tasks.
func ReadLast(dir string, name task.Name) (Recording, error) {
	var last Metadata
	found := map[task.ID]string{} // the items by task
	for _, in := range folders {
		entries, err := os.ReadDir(filepath.Join(dir, in))
		if err != nil && !os.IsNotExist(err) {
			return Recording{}, task.Wrap(task.DataDir, err, "cannot list the runs")
		}
		for _, entry := range entries {
			var run Metadata
			if uuid.Validate(entry.Name()) != nil || readJSON(filepath.Join(dir, in, entry.Name(), metadataFile), &run) != nil || !run.is(name) {
				continue // one that cannot be read is no reason not to show another
			}
			found[run.Task] = run.Item
			if last.UUID == "" || run.BeganAt.After(last.BeganAt) {
				last = run
			}
		}
	}
	if len(found) > 1 && name.ID != "" || len(distinct(found)) > 1 {
		return Recording{}, task.Errorf(task.Invalid, "runs of several tasks are meant: %s", strings.Join(distinct(found), ", ")).WithHint("name one of them")
	}
	if last.UUID == "" {
		return Recording{}, task.Errorf(task.NotFound, "there is no run of that task in %s", dir).
			WithHint("its folders running, paused and completed have the runs that there are; a server is asked with --server")
	}
	return Read(dir, last.UUID)
}

// is reports whether the run is of the task that is named.
func (m Metadata) is(name task.Name) bool {
	key, err := task.ParseKey(m.Item)
	if err != nil && name.ID == "" {
		return false // a run without an item
	}
	return name.Matches(task.Task{ID: m.Task, Key: key, URL: m.URL})
}

// distinct are the different items.
func distinct(items map[task.ID]string) []string {
	return slices.Compact(slices.Sorted(maps.Values(items)))
}
