package taskset_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/task"
)

// row is a row that can be used, with some fields changed.
func row(t *testing.T, changes map[string]any) string {
	t.Helper()
	fields := map[string]any{
		"instance_id": "owner__name-1", "repo": "owner/name", "base_commit": strings.Repeat("a", 40), "patch": "diff\n", "test_patch": "diff\n",
		"problem_statement": "It does not work", "FAIL_TO_PASS": `["tests/test_x.py::test_y"]`, "PASS_TO_PASS": []string{"tests/test_x.py::test_z"},
		"hints_text": "", "version": "1.0", "created_at": "2024-01-01", "something": []int{1},
	}
	maps.Copy(fields, changes)
	data, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// bare makes a folder that looks like a bare repository.
func bare(t *testing.T, folder string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(folder, "objects"), 0o750); err != nil {
		t.Fatal(err)
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	lines := row(t, nil) + "\n\n" + row(t, map[string]any{"instance_id": "two", "FAIL_TO_PASS": []string{"a"}, "PASS_TO_PASS": "", "test_cmd": "go test ./..."}) + "\n"
	clones := t.TempDir()
	bare(t, filepath.Join(clones, "owner__name.git"))
	file := write(t, "set.jsonl", lines)
	sum := sha256.Sum256([]byte(lines))
	set, err := taskset.Load(file, taskset.Options{Repositories: clones, SHA256: strings.ToUpper(hex.EncodeToString(sum[:]))})
	if err != nil {
		t.Fatal(err)
	}
	one, two := set.Tasks[0], set.Tasks[1]
	if !cmp.Equal(one.FailToPass, []string{"tests/test_x.py::test_y"}) || !cmp.Equal(one.PassToPass, []string{"tests/test_x.py::test_z"}) || one.Repository != filepath.Join(clones, "owner__name.git") || one.Missing != "" {
		t.Errorf("the first: %+v", one)
	}
	if two.TestCommand != "go test ./..." || len(two.PassToPass) != 0 {
		t.Errorf("the second: %+v", two)
	}
	if one.Hash() == two.Hash() || set.Hash != hex.EncodeToString(sum[:]) {
		t.Errorf("the hashes: %s, %s, %s", one.Hash(), two.Hash(), set.Hash)
	}
	// A list and a folder with one file are the same.
	list := filepath.Dir(write(t, "rows.json", " ["+row(t, nil)+","+row(t, map[string]any{"instance_id": "two"})+"]\n"))
	if set, err := taskset.Load(list, taskset.Options{}); err != nil || len(set.Tasks) != 2 || set.Tasks[0].Hash() != one.Hash() {
		t.Errorf("a list: %d tasks, %v", len(set.Tasks), err)
	}
}

// A set names repositories in its own folder, and clones that the person names. What else is
// on this machine is none of its business.
func TestWhereRepositoriesAre(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	bare(t, outside)
	for name, one := range map[string]struct {
		fields map[string]any
		found  bool
	}{
		"a folder of the set":   {map[string]any{"repo": "repos/a"}, true},
		"beside the name":       {map[string]any{"repo_path": "repos/a"}, true},
		"an address":            {map[string]any{"repo": "file:repos/a"}, true},
		"elsewhere":             {map[string]any{"repo": outside}, false},
		"an address elsewhere":  {map[string]any{"repo": "file://" + outside}, false},
		"up":                    {map[string]any{"repo": "../" + filepath.Base(outside), "repo_path": "repos/../../x"}, false},
		"one that is not there": {map[string]any{"repo": "owner/other"}, false},
	} {
		file := write(t, "tasks.jsonl", row(t, one.fields)+"\n")
		bare(t, filepath.Join(filepath.Dir(file), "repos", "a", ".git"))
		set, err := taskset.Load(file, taskset.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if made := set.Tasks[0]; (made.Repository != "") != one.found || (made.Missing == "") != one.found || !one.found && !strings.Contains(made.Missing, "--repositories") {
			t.Errorf("%s: %q, %q", name, made.Repository, made.Missing)
		}
	}
}

// A repository of a set whose objects are elsewhere could be any of this machine.
func TestLinksInSets(t *testing.T) {
	t.Parallel()
	private := t.TempDir()
	bare(t, private)
	for name, make := range map[string]func(at string) error{
		"the folder": func(at string) error { return os.Symlink(private, at) },
		"its objects": func(at string) error {
			return errors.Join(os.Mkdir(at, 0o750), os.Symlink(filepath.Join(private, "objects"), filepath.Join(at, "objects")))
		},
		"its .git": func(at string) error {
			return errors.Join(os.Mkdir(at, 0o750), os.Symlink(private, filepath.Join(at, ".git")))
		},
		"a pack": func(at string) error {
			return errors.Join(os.MkdirAll(filepath.Join(at, "objects", "pack"), 0o750), os.Symlink(filepath.Join(private, "x.pack"), filepath.Join(at, "objects", "pack", "x.pack")))
		},
		"alternates": func(at string) error {
			info := filepath.Join(at, "objects", "info")
			return errors.Join(os.MkdirAll(info, 0o750), os.WriteFile(filepath.Join(info, "alternates"), []byte(private+"/objects\n"), 0o600))
		},
	} {
		file := write(t, "set.jsonl", row(t, map[string]any{"repo": "app"})+"\n")
		if err := make(filepath.Join(filepath.Dir(file), "app")); err != nil {
			t.Fatal(err)
		}
		set, err := taskset.Load(file, taskset.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if one := set.Tasks[0]; one.Repository != "" || !strings.Contains(one.Missing, "lead elsewhere") {
			t.Errorf("%s: %q, %q", name, one.Repository, one.Missing)
		}
	}
}

func TestBadSets(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("x", 33<<20)
	for name, one := range map[string]struct {
		text string
		code task.Code
	}{
		"no JSON":           {"I am a set\n", task.Invalid},
		"nothing":           {"\n", task.Invalid},
		"an empty list":     {"[]", task.Invalid},
		"a cut list":        {"[" + row(t, nil), task.Invalid},
		"the same id":       {row(t, nil) + "\n" + row(t, map[string]any{"instance_id": "OWNER__name-1"}), task.Invalid},
		"a path as id":      {row(t, map[string]any{"instance_id": "../x"}), task.Invalid},
		"a folder as id":    {row(t, map[string]any{"instance_id": "a/b"}), task.Invalid},
		"a hidden id":       {row(t, map[string]any{"instance_id": ".git"}), task.Invalid},
		"no id":             {row(t, map[string]any{"instance_id": ""}), task.Invalid},
		"a branch":          {row(t, map[string]any{"base_commit": "main"}), task.Invalid},
		"an option":         {row(t, map[string]any{"base_commit": "--upload-pack=x"}), task.Invalid},
		"no patch":          {row(t, map[string]any{"patch": ""}), task.Invalid},
		"no statement":      {row(t, map[string]any{"problem_statement": " "}), task.Invalid},
		"tests as numbers":  {row(t, map[string]any{"FAIL_TO_PASS": []int{1}}), task.Invalid},
		"tests as a text":   {row(t, map[string]any{"FAIL_TO_PASS": "test_x"}), task.Invalid},
		"nothing to fix":    {row(t, map[string]any{"FAIL_TO_PASS": []string{}}), task.Invalid},
		"an enormous row":   {row(t, map[string]any{"hints_text": many}), task.TooLarge},
		"an enormous patch": {row(t, map[string]any{"patch": many[:17<<20]}), task.TooLarge},
	} {
		if _, err := taskset.Load(write(t, "tasks.jsonl", one.text), taskset.Options{}); task.CodeOf(err) != one.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	file := write(t, "tasks.jsonl", row(t, nil))
	if _, err := taskset.Load(file, taskset.Options{SHA256: strings.Repeat("0", 64)}); task.CodeOf(err) != task.Invalid {
		t.Errorf("another hash: %v", err)
	}
	if _, err := taskset.Load(file+".not", taskset.Options{}); task.CodeOf(err) != task.NotFound {
		t.Errorf("no file: %v", err)
	}
}
