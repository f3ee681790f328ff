package testreport_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/testreport"
)

// scenario is a small project, how its tests are run, and what a report of that says.
type scenario struct {
	name    string
	files   map[string]string
	command string
	only    []string
	// want are the cases by name; those of others are not in the report.
	want     map[string]testreport.Status
	complete bool
	passed   bool
	note     string // part of the note
	// messages are parts of the messages of cases.
	messages map[string]string
}

// expected is the message of tests that are marked as failing.
const expected = "expected to fail"

const (
	passed  = testreport.Passed
	failed  = testreport.Failed
	skipped = testreport.Skipped
)

// onMachine runs scenarios with a runner that make test has.
func onMachine(t *testing.T, program string, scenarios []scenario) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		testkit.LeaveOut(t, program)
	}
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			check(t, s, runScenario(t, s, t.TempDir(), ""))
		})
	}
}

// printed are the runners of which what they print is read.
var printed = []string{"cargo", "bun", "deno"}

// recorded reads what a runner wrote that make test does not have. With its name in
// TORYO_TEST_RECORD the runner is run and recorded: see testdata/README.md.
func recorded(t *testing.T, runner string, scenarios []scenario) {
	t.Helper()
	record := slices.Contains(strings.Split(os.Getenv("TORYO_TEST_RECORD"), ","), runner)
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join("testdata", runner, strings.ReplaceAll(s.name, " ", "-"))
			if record {
				got := runScenario(t, s, recordingDir(t), dir)
				check(t, s, got)
				return
			}
			output, err := os.ReadFile(filepath.Join(dir, "output.txt"))
			if !slices.Contains(printed, runner) {
				output, err = nil, nil
			}
			code, err2 := os.ReadFile(filepath.Join(dir, "exit.txt"))
			exit, err3 := strconv.Atoi(strings.TrimSpace(string(code)))
			if err := errors.Join(err, err2, err3); err != nil {
				t.Fatal(err)
			}
			check(t, s, found(t, s, writeProject(t, s, t.TempDir())).Read(output, exit, os.DirFS(filepath.Join(dir, "report"))))
		})
	}
}

// recordingDir is a folder in the system that has the runner.
func recordingDir(t *testing.T) string {
	t.Helper()
	root := os.Getenv("TORYO_TEST_RECORD_ROOT")
	if root == "" {
		return t.TempDir()
	}
	dir := filepath.Join(root, "tmp", "record-"+filepath.Base(t.TempDir())+strings.ReplaceAll(filepath.Base(t.Name()), " ", "-"))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func writeProject(t *testing.T, s scenario, dir string) string {
	t.Helper()
	project := filepath.Join(dir, "project")
	for name, content := range s.files {
		file := filepath.Join(project, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return project
}

func found(t *testing.T, s scenario, project string) testreport.Runner {
	t.Helper()
	runner, ok := testreport.Find(s.command, os.DirFS(project))
	if !ok {
		t.Fatalf("the runner of %q is not found", s.command)
	}
	return runner
}

// runScenario runs a real runner. With a name it keeps what there is to read.
func runScenario(t *testing.T, s scenario, dir, keep string) testreport.Report {
	t.Helper()
	project, reports := writeProject(t, s, dir), filepath.Join(dir, "report")
	if modules := os.Getenv("TORYO_TEST_RECORD_MODULES"); keep != "" && modules != "" {
		if err := os.Symlink(modules, filepath.Join(project, "node_modules")); err != nil {
			t.Fatal(err)
		}
	}
	root := ""
	if keep != "" {
		root = os.Getenv("TORYO_TEST_RECORD_ROOT")
	}
	runner := found(t, s, project)
	line := runner.Command(strings.TrimPrefix(reports, root))
	if len(s.only) > 0 {
		var ok bool
		if line, ok = runner.Only(strings.TrimPrefix(reports, root), s.only); !ok {
			t.Fatalf("%s cannot run %q only", runner.Name(), s.only)
		}
	}
	command := exec.Command("sh", "-c", line)
	command.Dir = project
	if root != "" {
		command = exec.Command("chroot", root, "sh", "-c", "cd "+strings.TrimPrefix(project, root)+" && "+line)
	}
	command.Env = append(os.Environ(), "GOFLAGS=", "GOPROXY=off", "PYTHONDONTWRITEBYTECODE=1", "NO_COLOR=1", "CARGO_NET_OFFLINE=true", "LANG=C.UTF-8")
	command.Env = slices.DeleteFunc(command.Env, func(v string) bool {
		return strings.HasPrefix(v, "NODE_TEST_CONTEXT=") || strings.HasPrefix(v, "GOCOVERDIR=")
	})
	output, err := command.CombinedOutput()
	if command.ProcessState == nil {
		t.Fatalf("%v", err)
	}
	exit := command.ProcessState.ExitCode()
	t.Logf("exit code %d\n%s", exit, output)
	if keep != "" {
		keepRecording(t, keep, dir, root, output, exit)
	}
	return runner.Read(output, exit, os.DirFS(reports))
}

// systemProperties are those of the machine's Java.
var systemProperties = regexp.MustCompile(`(?s)<properties>.*?</properties>|hostname="[^"]*"`)

// keepRecording keeps what a runner wrote, with the paths of this machine replaced.
func keepRecording(t *testing.T, keep, dir, root string, output []byte, exit int) {
	t.Helper()
	neutral := func(data []byte) []byte {
		data = bytes.ReplaceAll(data, []byte(strings.TrimPrefix(dir, root)), nil)
		if modules := os.Getenv("TORYO_TEST_RECORD_MODULES"); modules != "" {
			data = bytes.ReplaceAll(data, []byte(modules), []byte("/project/node_modules"))
		}
		return systemProperties.ReplaceAll(data, nil)
	}
	write := func(name string, data []byte) {
		file := filepath.Join(keep, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, neutral(data), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(keep); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(printed, filepath.Base(filepath.Dir(keep))) {
		write("output.txt", output)
	}
	write("exit.txt", []byte(strconv.Itoa(exit)+"\n"))
	reports := os.DirFS(filepath.Join(dir, "report"))
	err := fs.WalkDir(reports, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || slices.Contains([]string{".py", ".cjs", ".mjs", ".pyc"}, filepath.Ext(name)) {
			return err
		}
		data, err := fs.ReadFile(reports, name)
		write(filepath.Join("report", name), data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, s scenario, got testreport.Report) {
	t.Helper()
	cases := map[string]testreport.Status{}
	for _, c := range got.Cases {
		cases[c.Name] = c.Status
	}
	if s.want == nil {
		s.want = map[string]testreport.Status{}
	}
	if diff := cmp.Diff(s.want, cases); diff != "" {
		t.Errorf("cases (-want +got):\n%s", diff)
	}
	if got.Complete != s.complete || got.Passed() != s.passed || !strings.Contains(got.Note, s.note) {
		t.Errorf("complete %v, passed %v, note %q; want %v, %v, %q", got.Complete, got.Passed(), got.Note, s.complete, s.passed, s.note)
	}
	if !got.Complete && got.Note == "" {
		t.Error("it does not say why it is not complete")
	}
	for _, c := range got.Cases {
		if !strings.Contains(c.Message, s.messages[c.Name]) {
			t.Errorf("%s has the message %q", c.Name, c.Message)
		}
		if c.Status == failed && c.Message == "" && s.complete {
			t.Errorf("%s does not say why it failed", c.Name)
		}
	}
}
