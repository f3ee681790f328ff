package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
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
	spentFile    = "spent.jsonl"
	draftPrefix  = ".toryo-draft-"
	ResultsFile  = "results.json"
	// PageFile is the page with plots.
	PageFile = "index.html"
	// JournalsFolder has the journals of runs.
	JournalsFolder = "journals"
)

// reports are the files for SWE-bench's harness, by patterns.
var reports = []string{"predictions.jsonl", "predictions.*.jsonl", "report.json", "report.*.json"}

// Plan is what all attempts of a folder have in common. An evaluation goes on only with the
// same one: results of different sets or settings are not to be mixed.
type Plan struct {
	Version int               `json:"version"`  // of the form of the folder
	Set     string            `json:"set"`      // its name
	SetHash string            `json:"set_hash"` // SHA-256
	Play    string            `json:"play,omitempty"`
	Models  map[string]string `json:"models"` // hash of the settings by name
}

// Check makes the folder if there is none. It fails with Conflict if there is something in it that
// no evaluation has made: names of files in it could be the person's own. Files are given that an
// evaluation leaves there before its plan.
func (f Folder) Check(others ...string) error {
	if err := os.MkdirAll(string(f), 0o750); err != nil {
		return task.Wrap(task.DataDir, err, "the folder for the results cannot be made")
	}
	var plan Plan
	err := readJSON(f.plan(), &plan)
	if err == nil && plan.Version == planVersion {
		return nil
	}
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return task.Errorf(task.Conflict, "%s is no plan of an evaluation that can be read", f.plan()).WithHint("choose another folder with --out")
	}
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return task.Wrap(task.DataDir, err, "the folder for the results cannot be read")
	}
	for _, entry := range entries {
		if !slices.Contains(others, entry.Name()) && !strings.HasPrefix(entry.Name(), draftPrefix) {
			return task.Errorf(task.Conflict, "%s is not empty, and no evaluation has made it", f).WithHint("choose another folder with --out")
		}
	}
	return nil
}

// Mark makes the folder one of evaluations. It is to be called by one process at a time.
func (f Folder) Mark() error {
	if _, err := os.Lstat(f.plan()); err == nil {
		return f.removeDrafts()
	}
	return writeJSON(f.plan(), Plan{Version: planVersion})
}

func (f Folder) plan() string { return filepath.Join(string(f), planFile) }

// removeDrafts removes files that a process did not finish which was killed.
func (f Folder) removeDrafts() error {
	return f.remove(draftPrefix+"*", filepath.Join(attemptsName, "*", "*", draftPrefix+"*"))
}

// ForgetReports removes the files for SWE-bench's harness. With another number of models they
// have other names.
func (f Folder) ForgetReports() error { return f.remove(reports...) }

// remove removes files by patterns.
func (f Folder) remove(patterns ...string) error {
	for _, pattern := range patterns {
		found, err := fs.Glob(os.DirFS(string(f)), filepath.ToSlash(pattern))
		if err != nil {
			return task.Wrap(task.Internal, err, "the pattern of files is wrong")
		}
		for _, name := range found {
			if err := os.Remove(filepath.Join(string(f), filepath.FromSlash(name))); err != nil {
				return task.Wrap(task.DataDir, err, "a file of an earlier call cannot be removed")
			}
		}
	}
	return nil
}

// planVersion is that of the form of folders.
const planVersion = 1

// Begin takes a folder that was marked for an evaluation. With models that it did not have
// before, they are added; Conflict says what else differs. Fresh forgets what was there.
func (f Folder) Begin(plan Plan, fresh bool) error {
	plan.Version = planVersion
	if fresh {
		for _, name := range []string{attemptsName, ResultsFile, spentFile, PageFile, JournalsFolder} {
			if err := os.RemoveAll(filepath.Join(string(f), name)); err != nil {
				return task.Wrap(task.DataDir, err, "what was there cannot be removed")
			}
		}
		if err := f.ForgetReports(); err != nil {
			return err
		}
	}
	var before Plan
	if err := readJSON(f.plan(), &before); err != nil {
		return task.Wrap(task.DataDir, err, string(f)+" cannot be read")
	}
	if fresh || len(before.Models) == 0 {
		before = plan
	}
	if err := f.compare(before, plan); err != nil {
		return err
	}
	maps.Copy(before.Models, plan.Models)
	files := map[string]string{}
	for name := range before.Models {
		file := strings.ToLower(FileName(name)) // some file systems do not tell them apart
		if other, is := files[file]; is || name == "" {
			return task.Errorf(task.Conflict, "the models %q and %q cannot be told apart by the names of files", name, other).WithHint("choose another folder with --out")
		}
		files[file] = name
	}
	return writeJSON(f.plan(), before)
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
			differs = "other settings or prompts of the model " + name + ", or of another version of the program"
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
	if err == nil && (attempt.Model != model || attempt.Task != id || attempt.Number != number) {
		err = fmt.Errorf("%s is attempt %d of %s at %s", f.attempt(model, id, number), attempt.Number, attempt.Model, attempt.Task)
	}
	if err != nil {
		return Attempt{}, false, task.Wrap(task.DataDir, err, "an attempt cannot be read").WithHint("remove the file, and it is made again")
	}
	return attempt, true, nil
}

// addOthers adds to the results what earlier calls have left: attempts by other models and with
// other numbers, and tasks that this call leaves out. Attempts that were scored in another way
// than the check says do not count.
func (f Folder) addOthers(results *Results) error {
	var plan Plan
	if err := readJSON(f.plan(), &plan); err != nil {
		return task.Wrap(task.DataDir, err, string(f)+" cannot be read")
	}
	before, err := f.Results()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, check := range before.Checks {
		if !slices.Contains(results.Tasks, check.Task) && slices.Contains(before.Tasks, check.Task) {
			results.Tasks, results.Checks = append(results.Tasks, check.Task), append(results.Checks, check)
		}
	}
	for _, model := range slices.Sorted(maps.Keys(plan.Models)) {
		for _, check := range results.Checks {
			if check.Error { // of this machine: what was scored before counts as it did
				check = lastUsable(before.Checks, check)
			}
			if err := f.addAttempts(results, model, check); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastUsable is the check of an earlier call if the task could be used then.
func lastUsable(before []Check, now Check) Check {
	at := slices.IndexFunc(before, func(c Check) bool { return c.Task == now.Task && c.Usable })
	if at < 0 {
		return now
	}
	return before[at]
}

// addAttempts adds the attempts of a model at a task that are not in the results.
func (f Folder) addAttempts(results *Results, model string, check Check) error {
	entries, err := os.ReadDir(filepath.Dir(f.attempt(model, check.Task, 1)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return task.Wrap(task.DataDir, err, "the attempts cannot be read")
	}
	for _, entry := range entries {
		number, err := strconv.Atoi(strings.TrimSuffix(entry.Name(), ".json"))
		if err != nil || slices.ContainsFunc(results.Attempts, func(a Attempt) bool { return a.Model == model && a.Task == check.Task && a.Number == number }) {
			continue // a draft, or it is there
		}
		attempt, found, err := f.Attempt(model, check.Task, number)
		if err != nil {
			return err
		}
		if !found || attempt.Basis != check.basis() {
			continue
		}
		results.Attempts = append(results.Attempts, attempt)
		if !slices.Contains(results.Models, model) {
			results.Models = append(results.Models, model)
		}
	}
	return nil
}

// HasAttempts reports whether any attempt was finished.
func (f Folder) HasAttempts() (bool, error) {
	entries, err := os.ReadDir(filepath.Join(string(f), attemptsName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, task.Wrap(task.DataDir, err, "the attempts cannot be read")
	}
	return len(entries) > 0, nil
}

// Keep writes down an attempt that has ended.
func (f Folder) Keep(attempt Attempt) error {
	return writeJSON(f.attempt(attempt.Model, attempt.Task, attempt.Number), attempt)
}

func (f Folder) attempt(model, id string, number int) string {
	return filepath.Join(string(f), attemptsName, FileName(model), id, strconv.Itoa(number)+".json")
}

// spending is what one call of a model has cost.
type spending struct {
	Task   string    `json:"instance_id"`
	Model  string    `json:"model"`
	Number int       `json:"attempt"`
	Cost   llm.Money `json:"cost"`
}

// spend writes down what a call has cost. Lines are only ever added, so that nothing is
// forgotten of attempts that are cut off or made again.
func (f Folder) spend(one spending) error {
	data, err := json.Marshal(one)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(string(f), spentFile), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return task.Wrap(task.DataDir, err, "what was spent cannot be written")
	}
	// The line before this one may have been cut off.
	_, err = file.Write(slices.Concat([]byte("\n"), data, []byte("\n")))
	if err = errors.Join(err, file.Close()); err != nil {
		return task.Wrap(task.DataDir, err, "what was spent cannot be written")
	}
	return nil
}

// spent is what everything in the folder has cost.
func (f Folder) spent() (sum llm.Money, err error) {
	file, err := os.Open(filepath.Join(string(f), spentFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, task.Wrap(task.DataDir, err, "what was spent cannot be read")
	}
	defer func() { _ = file.Close() }() // it was only read
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var one spending
		if json.Unmarshal(lines.Bytes(), &one) == nil { // others are empty or were cut off
			sum += one.Cost
		}
	}
	if err := lines.Err(); err != nil {
		return 0, task.Wrap(task.DataDir, err, "what was spent cannot be read")
	}
	return sum, nil
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
	data, err := Encode(value)
	if err != nil {
		return err
	}
	return WriteFile(path, data)
}

// Encode is a value as JSON for a file.
func Encode(value any) ([]byte, error) {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return nil, task.Wrap(task.Internal, err, "the results cannot be encoded")
	}
	return data.Bytes(), nil
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
	draft, err := os.CreateTemp(filepath.Dir(path), draftPrefix)
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
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes sure that the names in a folder outlast a machine that stops. Windows keeps
// its own journal of that, and refuses to sync a folder.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
