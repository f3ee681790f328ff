package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	Reason  string  `json:"reason,omitempty"` // why it is no task
	Seconds float64 `json:"seconds"`
}

// maker makes the tasks of a set.
type maker struct {
	options

	place  string
	client client
	tester *tester

	tasks []row
	good  []pair
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
		began := time.Now()
		task, err := m.task(ctx, &p)
		if err := m.note(p, began, err); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		if err == nil {
			m.tasks, m.good = append(m.tasks, task), append(m.good, p)
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
	m.tried = append(m.tried, attempt{Module: p.module, Older: p.older, Newer: p.newer, Reason: why, Seconds: took.Round(time.Millisecond).Seconds()})
	fmt.Fprintf(m.log, "%s: %s (%s)\n", p, cmp.Or(why, "good"), took.Round(time.Second/10))
	return nil
}

// task makes a task of a pair, with its repository. If the pair is no task the repository is
// removed again.
func (m *maker) task(ctx context.Context, p *pair) (made row, err error) {
	older, newer, err := m.client.download(ctx, p)
	if err != nil {
		return made, err
	}
	s, err := m.client.readSource(ctx, older, newer)
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
	id, repo := names(*p)
	at := path.Join(repositories, id+".git")
	repository := filepath.Join(m.out, filepath.FromSlash(at))
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(repository))
		}
	}()
	base, err := commit(ctx, repository, m.place, s.older.and(s.vendor), p.module+" "+p.older, p.olderTime)
	if err != nil {
		return made, err
	}
	found, err := m.tester.judge(ctx, repository, command, gold, tests)
	if err != nil {
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
	return strings.ReplaceAll(repo, "/", "__") + "-" + p.newer, repo
}

// modules is how many modules have a task.
func (m *maker) modules() int {
	found := map[string]bool{}
	for _, p := range m.good {
		found[p.module] = true
	}
	return len(found)
}

// write writes the tasks, the pairs that were tried, and the list that leads to the same
// tasks again.
func (m *maker) write() error {
	var list strings.Builder
	list.WriteString("# module, older version, newer version, sums of both as in go.sum\n")
	for _, p := range slices.SortedStableFunc(slices.Values(m.good), func(a, b pair) int { return strings.Compare(a.module, b.module) }) {
		list.WriteString(p.line() + "\n")
	}
	tasks, err := lines(m.tasks)
	if err != nil {
		return err
	}
	tried, err := lines(m.tried)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{tasksFile: tasks, triedFile: tried, modulesFile: []byte(list.String())} {
		if err := os.WriteFile(filepath.Join(m.out, name), content, 0o644); err != nil { //nolint:gosec // nothing in it is secret
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
