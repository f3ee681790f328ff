package taskset

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

// Options say how a set is read.
type Options struct {
	// Repositories is a folder with clones as owner/name or owner__name; may be empty.
	Repositories string
	// SHA256 is what the hash of the set has to be; empty for any.
	SHA256 string
}

// Load reads a set: a file with rows (.jsonl or .json), or a folder with one such file, or with task
// folders.
func Load(path string, options Options) (Set, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Set{}, task.Wrap(task.NotFound, err, "the task set cannot be read")
	}
	var set Set
	if info.IsDir() {
		set, err = loadFolder(path, options)
	} else {
		set, err = loadRows(path, options)
	}
	if err != nil {
		return Set{}, err
	}
	if options.SHA256 != "" && !strings.EqualFold(options.SHA256, set.Hash) {
		return Set{}, task.Errorf(task.Invalid, "the set has the SHA-256 %s, not %s", set.Hash, clip(options.SHA256)).WithHint("get it again, or leave --sha256 out")
	}
	return set, set.Check()
}

// Check refuses tasks that cannot be used, and sets whose ids cannot be told apart.
func (s Set) Check() error {
	if len(s.Tasks) == 0 {
		return task.Errorf(task.Invalid, "the set has no tasks")
	}
	seen := map[string]bool{}
	for _, one := range s.Tasks {
		if err := one.check(); err != nil {
			return err
		}
		lower := strings.ToLower(one.ID) // some file systems do not tell them apart
		if seen[lower] {
			return task.Errorf(task.Invalid, "the id %s is in the set twice", one.ID)
		}
		seen[lower] = true
	}
	return nil
}

// loadFolder reads a folder with a file of rows, or with task folders.
func loadFolder(path string, options Options) (Set, error) {
	folders, err := taskFolders(path)
	if err != nil {
		return Set{}, err
	}
	if len(folders) > 0 {
		return loadTaskFolders(path, folders)
	}
	for _, pattern := range []string{"task.yaml", "*/task.yaml"} {
		if found, err := filepath.Glob(filepath.Join(path, pattern)); err == nil && len(found) > 0 {
			return Set{}, task.Errorf(task.Unsupported, "%s has task folders of the first Terminal-Bench, which are not supported", path).
				WithHint("convert them to folders with a task.toml, as Harbor can")
		}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return Set{}, task.Wrap(task.NotFound, err, "the task set cannot be read")
	}
	var files []string
	for _, entry := range entries {
		if ext := filepath.Ext(entry.Name()); entry.Type().IsRegular() && (ext == ".jsonl" || ext == ".json") {
			files = append(files, entry.Name())
		}
	}
	if at := slices.Index(files, "tasks.jsonl"); at >= 0 {
		files = files[at : at+1]
	}
	if len(files) != 1 {
		return Set{}, task.Errorf(task.Invalid, "%s has neither a file tasks.jsonl nor one other file with rows", path)
	}
	return loadRows(filepath.Join(path, files[0]), options)
}

// loadRows reads a file with one row to a line, or with a list of rows.
func loadRows(path string, options Options) (Set, error) {
	file, err := os.Open(path)
	if err != nil {
		return Set{}, task.Wrap(task.NotFound, err, "the task set cannot be read")
	}
	defer func() { _ = file.Close() }() // it was only read
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return Set{}, task.Errorf(task.Invalid, "%s is no file", path)
	} else if info.Size() > maxSet {
		return Set{}, task.Errorf(task.TooLarge, "the set has %d bytes; %d are the limit", info.Size(), maxSet)
	}
	sum := sha256.New()
	input := bufio.NewReader(io.TeeReader(io.LimitReader(file, maxSet), sum))
	set := Set{Name: filepath.Base(path)}
	at := places{folder: filepath.Dir(path), repositories: options.Repositories}
	if first, err := firstByte(input); err == nil && first == '[' {
		set.Tasks, err = at.list(input)
		if err != nil {
			return Set{}, err
		}
	} else if set.Tasks, err = at.lines(input); err != nil {
		return Set{}, err
	}
	if _, err := io.Copy(io.Discard, input); err != nil {
		return Set{}, task.Wrap(task.Invalid, err, "the task set cannot be read")
	}
	set.Hash = hex.EncodeToString(sum.Sum(nil))
	return set, nil
}

// firstByte is the first byte that is no space.
func firstByte(input *bufio.Reader) (byte, error) {
	for {
		first, err := input.ReadByte()
		if err != nil {
			return 0, err
		}
		if !bytes.ContainsRune([]byte(" \t\r\n"), rune(first)) {
			return first, input.UnreadByte()
		}
	}
}

// places is where the repositories of rows are.
type places struct{ folder, repositories string }

// list reads a JSON list of rows.
func (p places) list(input io.Reader) ([]Task, error) {
	decoder := json.NewDecoder(input)
	if _, err := decoder.Token(); err != nil {
		return nil, task.Wrap(task.Invalid, err, "the set is not JSON")
	}
	var tasks []Task
	for decoder.More() {
		var data json.RawMessage
		if err := decoder.Decode(&data); err != nil {
			return nil, task.Wrap(task.Invalid, err, "the set is not JSON")
		}
		one, err := p.row(data, len(tasks)+1)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, one)
	}
	if _, err := decoder.Token(); err != nil {
		return nil, task.Wrap(task.Invalid, err, "the set has no end")
	}
	return tasks, nil
}

// lines reads a row from each line.
func (p places) lines(input io.Reader) ([]Task, error) {
	scanner := bufio.NewScanner(input)
	scanner.Buffer(nil, maxRow)
	var tasks []Task
	for number := 1; scanner.Scan(); number++ {
		line := bytes.TrimSpace(scanner.Bytes())
		if len(line) == 0 {
			continue
		}
		one, err := p.row(line, number)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, one)
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, task.Errorf(task.TooLarge, "row %d of the set has more than %d bytes", len(tasks)+1, maxRow)
	} else if err != nil {
		return nil, task.Wrap(task.Invalid, err, "the task set cannot be read")
	}
	return tasks, nil
}

// row is a row as SWE-bench has it. Fields that are not named here do not matter.
type row struct {
	ID          string `json:"instance_id"`
	Repo        string `json:"repo"`
	RepoPath    string `json:"repo_path"`
	Base        string `json:"base_commit"`
	Patch       string `json:"patch"`
	TestPatch   string `json:"test_patch"`
	Statement   string `json:"problem_statement"`
	FailToPass  names  `json:"FAIL_TO_PASS"`
	PassToPass  names  `json:"PASS_TO_PASS"`
	TestCommand string `json:"test_cmd"`
	AfterWork   bool   `json:"after_work"`
}

// names is a list of tests, or, as in the public set, a text that is one as JSON.
type names []string

// UnmarshalJSON implements json.Unmarshaler.
func (n *names) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		if data = []byte(text); strings.TrimSpace(text) == "" {
			return nil
		}
	}
	return json.Unmarshal(data, (*[]string)(n))
}

// row reads one row and finds its repository.
func (p places) row(data []byte, number int) (Task, error) {
	var r row
	if len(data) > maxRow {
		return Task{}, task.Errorf(task.TooLarge, "row %d of the set has more than %d bytes", number, maxRow)
	}
	if number > MaxTasks {
		return Task{}, task.Errorf(task.TooLarge, "the set has more than %d tasks", MaxTasks)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return Task{}, task.Wrap(task.Invalid, err, fmt.Sprintf("row %d of the set cannot be read", number))
	}
	made := Task{ID: r.ID, Repo: r.Repo, Base: r.Base, Patch: r.Patch, TestPatch: r.TestPatch, Statement: r.Statement,
		FailToPass: r.FailToPass, PassToPass: r.PassToPass, TestCommand: r.TestCommand, AfterWork: r.AfterWork}
	if err := made.check(); err != nil {
		return Task{}, err
	}
	made.Repository, made.Missing = p.find(r)
	return made, nil
}

// find is the repository of a row on this machine, or why there is none. A set names folders
// of its own only: others than those in its folder could be anything on this machine.
func (p places) find(r row) (path, missing string) {
	for _, place := range p.own(r) {
		if !isRepository(place) {
			continue
		}
		if isInside(p.folder, place) {
			return place, ""
		}
		return "", "the repository " + clip(r.Repo) + " of the set has links or alternates that lead elsewhere; name a folder with clones by --repositories"
	}
	for _, place := range p.clones(r) {
		if isRepository(place) {
			return place, ""
		}
	}
	where := "name a folder with clones by --repositories"
	if p.repositories != "" {
		where = "clone it into " + p.repositories
	}
	return "", "the repository " + clip(r.Repo) + " is not on this machine; " + where + ", as " + strings.ReplaceAll(clip(r.Repo), "/", "__")
}

// own are the places in the folder of the set where the repository of a row may be.
func (p places) own(r row) (all []string) {
	for _, named := range []string{r.RepoPath, r.Repo} {
		if address, err := url.Parse(named); err == nil && address.Scheme == "file" {
			named = strings.TrimPrefix(address.Opaque+address.Path, "/")
		}
		if filepath.IsLocal(named) {
			all = append(all, filepath.Join(p.folder, named))
		}
	}
	return all
}

// clones are the places in the folder that the person has named. What links say there is the
// person's own will.
func (p places) clones(r row) (all []string) {
	if p.repositories == "" || !filepath.IsLocal(r.Repo) {
		return nil
	}
	for _, name := range []string{r.Repo, strings.ReplaceAll(r.Repo, "/", "__")} {
		all = append(all, filepath.Join(p.repositories, name), filepath.Join(p.repositories, name+".git"))
	}
	return all
}

// isInside reports whether all objects of a repository are in the folder of the set. Links and
// alternates could make private repositories of this machine a part of a task.
func isInside(set, repository string) bool {
	relative, err := filepath.Rel(set, repository)
	if err != nil {
		return false
	}
	at := set
	for part := range strings.SplitSeq(relative, string(filepath.Separator)) {
		at = filepath.Join(at, part)
		if info, err := os.Lstat(at); err != nil || !info.IsDir() {
			return false
		}
	}
	if info, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
		if at = filepath.Join(at, ".git"); !info.IsDir() {
			return false
		}
	}
	objects := filepath.Join(at, "objects")
	if _, err := os.Lstat(filepath.Join(objects, "info", "alternates")); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	plain := func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !entry.Type().IsRegular() {
			err = errors.New("it is a link")
		}
		return err
	}
	return filepath.WalkDir(objects, plain) == nil
}

// isRepository reports whether a folder has git's files in it or in .git.
func isRepository(folder string) bool {
	for _, at := range []string{folder, filepath.Join(folder, ".git")} {
		if info, err := os.Stat(filepath.Join(at, "objects")); err == nil && info.IsDir() {
			return true
		}
	}
	return false
}
