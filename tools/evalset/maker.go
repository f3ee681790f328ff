package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"
)

// The names of what is in the folder of a set.
const (
	repositories = "repos"
	workFolder   = "work" // is removed at the end
	tasksFile    = "tasks.jsonl"
	triedFile    = "tried.jsonl"
	modulesFile  = "modules.txt"
)

// Patches that are longer are no task for one sitting.
const (
	mostGold  = 100 << 10
	mostTests = 400 << 10
)

// row is a task as SWE-bench writes it, with the place of its repository and the command for
// its tests besides.
type row struct {
	InstanceID       string   `json:"instance_id"`
	Repo             string   `json:"repo"`
	RepoPath         string   `json:"repo_path"` // below the set's folder
	BaseCommit       string   `json:"base_commit"`
	Patch            string   `json:"patch"`
	TestPatch        string   `json:"test_patch"`
	ProblemStatement string   `json:"problem_statement"`
	FailToPass       []string `json:"FAIL_TO_PASS"`
	PassToPass       []string `json:"PASS_TO_PASS"`
	TestCommand      string   `json:"test_cmd"`
	Version          string   `json:"version"`
	CreatedAt        string   `json:"created_at"`
}

// attempt is a pair that was tried.
type attempt struct {
	Module  string  `json:"module"`
	Older   string  `json:"older"`
	Newer   string  `json:"newer"`
	Reason  string  `json:"reason,omitempty"`  // why it is no task
	Task    string  `json:"task,omitempty"`    // the identity of the task that it became
	Sums    string  `json:"sums,omitempty"`    // of both versions, if it became one
	Passing bool    `json:"passing,omitempty"` // the reason may be gone when it is tried again
	Seconds float64 `json:"seconds"`
}

func (a attempt) pair() pair { return pair{module: a.Module, older: a.Older, newer: a.Newer} }

// maker makes the tasks of a set.
type maker struct {
	options

	place  string
	client client
	tester *tester

	tasks []row
	tried []attempt
}

// search takes one task of each module, then a second one of each, until there are enough.
func (m *maker) search(ctx context.Context, modules []listed) error {
	for i, l := range modules {
		if len(l.pairs) > 0 {
			continue
		}
		versions, err := m.client.versions(ctx, l.path)
		if err := m.note(pair{module: l.path}, time.Now(), err); err != nil {
			return err
		}
		modules[i].pairs = pairsOf(l.path, versions, m.tries)
	}
	for left := true; left && len(m.tasks) < m.pairs; {
		left = false
		for i := range modules {
			if err := m.next(ctx, &modules[i]); err != nil {
				return err
			}
			left = left || len(modules[i].pairs) > 0
		}
	}
	return nil
}

// next makes a task of the first good pair that a module still has.
func (m *maker) next(ctx context.Context, l *listed) error {
	for len(l.pairs) > 0 && len(m.tasks) < m.pairs {
		p := l.pairs[0]
		l.pairs = l.pairs[1:]
		if at := slices.IndexFunc(m.tried, func(a attempt) bool { return a.pair().String() == p.String() }); at >= 0 { // by an earlier call
			if m.tried[at].Task != "" {
				return nil
			}
			continue
		}
		began := time.Now()
		task, err := m.task(ctx, &p)
		if err == nil {
			m.tasks = append(m.tasks, task)
		}
		if err := m.note(p, began, err); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		if err := m.write(); err != nil {
			return err
		}
		if err == nil {
			return nil
		}
	}
	return nil
}

// note keeps how an attempt ended. A pair that is no task is a result; anything else is an
// error.
func (m *maker) note(p pair, began time.Time, err error) error {
	why, ok := unfitness(err)
	if !ok {
		return err
	}
	if err == nil && p.newer == "" {
		return nil // the versions of a module were listed
	}
	took := time.Since(began)
	tried := attempt{Module: p.module, Older: p.older, Newer: p.newer, Reason: why.reason, Passing: why.passing, Seconds: took.Round(time.Millisecond).Seconds()}
	if err == nil {
		tried.Task, _ = names(p)
		tried.Sums = p.olderSum + " " + p.newerSum
	}
	if p.newer != "" {
		m.tried = append(m.tried, tried)
	}
	fmt.Fprintf(m.log, "%s: %s (%s) %s\n", p, cmp.Or(why.reason, "good"), took.Round(time.Second/10), why.details)
	return nil
}

// task makes a task of a pair, with its repository, which gets its place in the set when the
// pair is good.
func (m *maker) task(ctx context.Context, p *pair) (made row, err error) {
	id, repo := names(*p)
	if slices.ContainsFunc(m.tasks, func(task row) bool { return strings.EqualFold(task.InstanceID, id) }) { // some file systems do not tell them apart
		return made, unfit("another task has the name %s", id)
	}
	listed := p.newerSum != ""
	older, newer, err := m.client.download(ctx, p)
	if err != nil {
		return made, err
	}
	s, err := m.client.readSource(ctx, older, newer, listed)
	if err != nil {
		return made, err
	}
	gold, tests, err := s.patches(ctx, m.place)
	if err != nil {
		return made, err
	}
	if len(gold) > mostGold || len(tests) > mostTests {
		return made, unfit("its patches are too long: %d KiB, and %d of tests", len(gold)>>10, len(tests)>>10)
	}
	command := "go test -vet=off ./..."
	if len(s.vendor) > 0 {
		command = "go test -vet=off -mod=vendor ./..."
	}
	repository := filepath.Join(m.place, id+".git")
	defer func() { err = errors.Join(err, os.RemoveAll(repository)) }()
	base, err := commit(ctx, repository, m.place, s.older.and(s.vendor), p.module+" "+p.older, p.olderTime)
	if err != nil {
		return made, err
	}
	found, err := m.tester.judge(ctx, repository, command, gold, tests)
	if err != nil {
		return made, err
	}
	at := path.Join(repositories, id+".git")
	if err := os.Rename(repository, filepath.Join(m.out, filepath.FromSlash(at))); err != nil {
		return made, err
	}
	return row{InstanceID: id, Repo: repo, RepoPath: at, BaseCommit: base, Patch: gold, TestPatch: tests,
		ProblemStatement: s.statement(*p, tests, found.failToPass), FailToPass: found.failToPass, PassToPass: notNil(found.passToPass),
		TestCommand: command, Version: p.newer, CreatedAt: p.newerTime}, nil
}

func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// names are the identity of a task, which can be the name of a file, and its repository as
// owner and name.
func names(p pair) (id, repo string) {
	prefix, _, _ := module.SplitPathVersion(p.module)
	words := strings.Split(prefix, "/")
	if len(words) > 2 { // without the host
		words = words[1:]
	}
	repo = words[0] + "/" + strings.Join(words[1:], "-")
	if len(words) == 1 {
		repo = words[0] + "/" + words[0]
	}
	plain := func(r rune) rune {
		if r < 0x80 && (r == '.' || r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z') {
			return r
		}
		return '-' // the identity is the name of files
	}
	id = strings.TrimLeft(strings.Map(plain, strings.ReplaceAll(repo, "/", "__")+"-"+p.newer), "._-")
	if len(id) > longestID {
		sum := sha256.Sum256([]byte(id))
		end := "-" + hex.EncodeToString(sum[:8])
		id = id[:longestID-len(end)] + end
	}
	return id, repo
}

// longestID is how long the identity of a task may be. Names of files in its repository are
// longer.
const longestID = 120

// modules is how many modules have a task.
func (m *maker) modules() int {
	found := map[string]bool{}
	for _, a := range m.tried {
		found[a.Module] = found[a.Module] || a.Task != ""
	}
	maps.DeleteFunc(found, func(_ string, has bool) bool { return !has })
	return len(found)
}

// goOn reads what an earlier call has left in the folder of the set. What it was in the
// middle of is removed: a repository whose task was not written.
func (m *maker) goOn() error {
	if err := readJSON(filepath.Join(m.out, tasksFile), &m.tasks); err != nil {
		return err
	}
	if err := readJSON(filepath.Join(m.out, triedFile), &m.tried); err != nil {
		return err
	}
	known := map[string]bool{}
	for _, task := range m.tasks {
		known[task.InstanceID] = true
	}
	m.tried = slices.DeleteFunc(m.tried, func(a attempt) bool { return a.Task != "" && !known[a.Task] || a.Passing })
	found, err := os.ReadDir(filepath.Join(m.out, repositories))
	if err != nil {
		return err
	}
	for _, entry := range found {
		if !known[strings.TrimSuffix(entry.Name(), ".git")] {
			if err := os.RemoveAll(filepath.Join(m.out, repositories, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// readJSON adds the lines of a file to the values, if there is such a file.
func readJSON[T any](file string, values *[]T) error {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		var value T
		if err := json.Unmarshal([]byte(line), &value); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		*values = append(*values, value)
	}
	return nil
}

// write writes the tasks, the pairs that were tried, and the list that leads to the same
// tasks again. It is called after each pair, so that a call that is interrupted can be
// repeated: the pairs go first, since one whose task is missing is tried again.
func (m *maker) write() error {
	var list strings.Builder
	list.WriteString("# module, older version, newer version, sums of both as in go.sum\n")
	for _, a := range slices.SortedStableFunc(slices.Values(m.tried), func(a, b attempt) int { return strings.Compare(a.Module, b.Module) }) {
		if a.Task != "" {
			list.WriteString(a.pair().String() + " " + a.Sums + "\n")
		}
	}
	tasks, err := lines(m.tasks)
	if err != nil {
		return err
	}
	tried, err := lines(m.tried)
	if err != nil {
		return err
	}
	for _, one := range []struct {
		name    string
		content []byte
	}{{triedFile, tried}, {tasksFile, tasks}, {modulesFile, []byte(list.String())}} {
		made := filepath.Join(m.place, one.name)
		if err := os.WriteFile(made, one.content, 0o644); err != nil { //nolint:gosec // nothing in it is secret
			return err
		}
		if err := os.Rename(made, filepath.Join(m.out, one.name)); err != nil {
			return err
		}
	}
	return nil
}

// lines are values as lines of JSON.
func lines[T any](values []T) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	for _, value := range values {
		if err := encoder.Encode(value); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
