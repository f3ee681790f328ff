package contexts

import (
	"os"
	"path/filepath"
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
