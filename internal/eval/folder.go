package eval

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	"github.com/toryo-dev/toryo/internal/task"
)

// Folder is where an evaluation is kept: an attempt to a file, which is there whole or not at
// all.
type Folder string

// The names in it.
const (
	planFile     = "evaluation.json"
	attemptsName = "attempts"
	checksName   = "checks"
	ResultsFile  = "results.json"
)

// Plan is what all attempts of a folder have in common. An evaluation goes on only with the
// same one: results of different sets or settings are not to be mixed.
type Plan struct {
	Set     string            `json:"set"`      // its name
	SetHash string            `json:"set_hash"` // SHA-256
	Play    string            `json:"play,omitempty"`
	Models  map[string]string `json:"models"` // hash of the settings by name
}

// Begin takes a folder for an evaluation. With models that it did not have before, they are
// added; Conflict says what else differs. Fresh forgets what was there.
func (f Folder) Begin(plan Plan, fresh bool) error {
	if fresh {
		for _, name := range []string{planFile, attemptsName, checksName, ResultsFile} {
			if err := os.RemoveAll(filepath.Join(string(f), name)); err != nil {
				return task.Wrap(task.DataDir, err, "what was there cannot be removed")
			}
		}
	}
	if err := os.MkdirAll(filepath.Join(string(f), attemptsName), 0o750); err != nil {
		return task.Wrap(task.DataDir, err, "the folder for the results cannot be made")
	}
	var before Plan
	switch err := readJSON(filepath.Join(string(f), planFile), &before); {
	case errors.Is(err, fs.ErrNotExist):
		before = plan
	case err != nil:
		return task.Wrap(task.DataDir, err, string(f)+" cannot be read")
	default:
		if err := f.compare(before, plan); err != nil {
			return err
		}
	}
	maps.Copy(before.Models, plan.Models)
	return writeJSON(filepath.Join(string(f), planFile), before)
}

// compare says why an evaluation cannot go on in a folder.
func (f Folder) compare(before, plan Plan) error {
	differs := ""
	switch {
	case before.SetHash != plan.SetHash:
		differs = "another task set (" + before.Set + ")"
	case before.Play != plan.Play:
		differs = "another --play"
	}
	for name, hash := range plan.Models {
		if was, is := before.Models[name]; is && was != hash {
			differs = "other settings of the model " + name + " or of the sandbox"
		}
	}
	if differs == "" {
		return nil
	}
	return task.Errorf(task.Conflict, "%s has results of %s, which cannot be mixed with these", f, differs).
		WithHint("choose another folder with --out, or forget them with --fresh")
}

// Attempt reads an attempt that was finished; found is false if it was not.
func (f Folder) Attempt(model, id string, number int) (attempt Attempt, found bool, err error) {
	err = readJSON(f.attempt(model, id, number), &attempt)
	if errors.Is(err, fs.ErrNotExist) {
		return Attempt{}, false, nil
	}
	if err != nil {
		return Attempt{}, false, task.Wrap(task.DataDir, err, "an attempt cannot be read").WithHint("remove the file, and it is made again")
	}
	return attempt, true, nil
}

// Keep writes down an attempt that has ended.
func (f Folder) Keep(attempt Attempt) error {
	return writeJSON(f.attempt(attempt.Model, attempt.Task, attempt.Number), attempt)
}

func (f Folder) attempt(model, id string, number int) string {
	return filepath.Join(string(f), attemptsName, FileName(model), id, strconv.Itoa(number)+".json")
}

// Results reads what an evaluation has come to.
func (f Folder) Results() (results Results, err error) {
	if err := readJSON(filepath.Join(string(f), ResultsFile), &results); err != nil {
		return Results{}, task.Wrap(task.NotFound, err, string(f)+" has no results").WithHint("name the folder of an evaluation that has ended")
	}
	return results, nil
}

// FileName is a name of a model as that of a file.
func FileName(model string) string {
	name := []byte(model)
	for i, c := range name {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.' && i > 0:
		default:
			name[i] = '_'
		}
	}
	return string(name)
}

// maxJSON is how large a file may be that is read back.
const maxJSON = 256 << 20

func readJSON(path string, into any) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() > maxJSON {
		return task.Errorf(task.TooLarge, "%s has more than %d bytes", path, maxJSON)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// writeJSON writes a file that is there whole or not at all, also when the machine stops.
func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(path, append(data, '\n'))
}

// WriteFile writes a file of the results in one step.
func WriteFile(path string, data []byte) error {
	err := os.MkdirAll(filepath.Dir(path), 0o750)
	if err == nil {
		err = replace(path, data)
	}
	if err != nil {
		return task.Wrap(task.DataDir, err, "the results cannot be written")
	}
	return nil
}

func replace(path string, data []byte) error {
	draft, err := os.CreateTemp(filepath.Dir(path), ".draft-")
	if err != nil {
		return err
	}
	_, err = draft.Write(data)
	if err == nil {
		err = draft.Sync()
	}
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return nil
}
