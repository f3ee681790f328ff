package app

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/task"
)

// onMachine lets a test have a configuration of the machine, and calls it in an empty folder.
func onMachine(t *testing.T, text string) config.MachinePlace {
	t.Helper()
	root := t.TempDir()
	before := config.Machine
	t.Cleanup(func() { config.Machine = before })
	config.Machine = config.MachinePlace{File: filepath.Join(root, "etc", "toryo.yaml"), Data: filepath.Join(root, "lib")}
	here := filepath.Join(root, "here")
	for _, folder := range []string{filepath.Dir(config.Machine.File), here} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if text != "" {
		if err := os.WriteFile(config.Machine.File, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(here)
	return config.Machine
}

// nothingHere checks that a command has left nothing where it was called.
func nothingHere(t *testing.T, args []string) {
	t.Helper()
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Fatalf("%v leaves %v, %v", args, left, err)
	}
}

// nobody is an address at which nobody listens.
func nobody(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return "http://" + listener.Addr().String()
}

// A configuration of the machine that cannot be read is not replaced by none: what works with an
// installation says which file it is and what to do, and makes no other installation.
//
//nolint:paralleltest // it changes the folder and the place of the machine
func TestAMachineFileThatCannotBeRead(t *testing.T) {
	machine := onMachine(t, "")
	if err := os.Symlink(machine.File, machine.File); err != nil { // so not even root can open it
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"serve"}, {"up"}, {"agent", "--server", "http://127.0.0.1:1"}, {"egress"}, {"restore", "x.backup"}, {"token", "create", "--role", "viewer"},
		{"tasks", "list"}, {"tasks", "stop", "#3"}, {"pause", "--all"}, {"replay", "#3"}, {"receipt", "list", "#3"}, {"board", "import", "."}, {"review", "list"},
		{"backup", "x.backup"}, {"llm", "spent"}, {"data", "usage"},
	} {
		code, _, said := toryo(t, nil, args...)
		for _, want := range []string{machine.File, "run the command with sudo, or name another configuration with --config"} {
			if code != task.BadConfig.Info().Exit || !strings.Contains(said, want) {
				t.Errorf("%v: exit %d, %q is missing in %s", args, code, want, said)
			}
		}
		nothingHere(t, args)
	}
	if _, err := os.Stat(machine.Data); !os.IsNotExist(err) {
		t.Errorf("the data directory is there: %v", err)
	}
	file := filepath.Join(filepath.Dir(machine.File), "receipt.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"receipt", "show", file}, {"receipt", "verify", file, "--key", file}} {
		if code, _, said := toryo(t, nil, args...); code == task.BadConfig.Info().Exit || strings.Contains(said, machine.File) {
			t.Errorf("%v: exit %d: %s", args, code, said)
		}
	}
}

// A server and what else works with secrets needs them; what works with the data does without.
//
//nolint:paralleltest // it changes the folder and the place of the machine
func TestSecretsOfTheMachineThatCannotBeRead(t *testing.T) {
	machine := onMachine(t, "gitea: {url: 'https://git.example', owner: team, bot_name: toryo, token_file: gone}\n")
	for _, args := range [][]string{{"serve"}, {"up"}, {"agent", "--server", "http://127.0.0.1:1"}, {"egress"}, {"review", "run"}, {"chat", "x"}} {
		code, _, said := toryo(t, nil, args...)
		for _, want := range []string{"gitea.token_file: ", "sudo", "--config"} {
			if code != task.BadConfig.Info().Exit || !strings.Contains(said, want) {
				t.Errorf("%v: exit %d, %q is missing in %s", args, code, want, said)
			}
		}
		nothingHere(t, args)
	}
	if said := mustRun(t, nil, "token", "create", "--role", "viewer"); !strings.HasPrefix(said, "toryo_") {
		t.Error(said)
	}
	if said := mustRun(t, nil, "token", "list"); !strings.Contains(said, "viewer") {
		t.Error(said)
	}
	nothingHere(t, nil)
	if _, err := os.Stat(filepath.Join(machine.Data, "toryo.db")); err != nil {
		t.Error(err)
	}
}

// A backup is restored into the installation of the machine also while its secrets are gone, as
// those of a service that is stopped.
//
//nolint:paralleltest // it changes the folder and the place of the machine
func TestRestoreOnTheMachine(t *testing.T) {
	data, file := boardData(t), filepath.Join(t.TempDir(), "x.backup")
	mustRun(t, nil, "backup", file, "--data", data)
	machine := onMachine(t, "gitea: {url: 'https://git.example', owner: team, bot_name: toryo, token_file: gone}\n")
	if said := mustRun(t, nil, "restore", file); !strings.Contains(said, "into "+machine.Data) {
		t.Error(said)
	}
	nothingHere(t, nil)
	if said := mustRun(t, nil, "board", "issue", "list", "--repo", "team/app"); !strings.Contains(said, "Say hello") {
		t.Error(said)
	}
}

// What works for whoever calls it, and what asks a server elsewhere, has nothing to do with the
// server of the machine.
//
//nolint:paralleltest // it changes the folder and the place of the machine
func TestCommandsWithoutTheMachineFile(t *testing.T) {
	machine := onMachine(t, "nonsense: [\n")
	mustRun(t, nil, "env", "detect", ".")
	elsewhere := nobody(t)
	for want, args := range map[task.Code][]string{
		task.Usage:       {"run", "--data", "x"},
		task.Unavailable: {"tasks", "list", "--server", elsewhere},
	} {
		if code, _, said := toryo(t, []string{"TORYO_TOKEN=x"}, args...); code != want.Info().Exit || strings.Contains(said, machine.File) {
			t.Errorf("%v: exit %d, want %s: %s", args, code, want, said)
		}
		nothingHere(t, args)
	}
	for _, args := range []string{"run", "env detect", "env setup"} {
		if said := mustRun(t, nil, append(strings.Fields(args), "--help")...); strings.Contains(said, machine.File) {
			t.Errorf("toryo %s --help names %s", args, machine.File)
		}
	}
}

// The configured model is that of the machine where nobody has named another.
//
//nolint:paralleltest // it changes the folder and the place of the machine
func TestTheModelOfTheMachineIsTried(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(script, []byte("model: ours\nrules:\n  - name: anything\n    answer: {text: \"well, yes\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	onMachine(t, "llm: {provider: script, script: "+script+"}\n")
	if said := mustRun(t, nil, "llm", "try", "hello"); !strings.Contains(said, "well, yes") {
		t.Errorf("it says %s", said)
	}
	nothingHere(t, []string{"llm", "try"})
}

// The URL of the database is a secret too. Who needs no database does without.
//
//nolint:paralleltest // it changes the folder and the place of the machine
func TestADatabaseURLThatCannotBeRead(t *testing.T) {
	machine := onMachine(t, "database: {driver: postgres, url_file: gone}\n")
	elsewhere := nobody(t)
	for _, args := range []string{"tasks list", "tasks logs #3", "replay #3", "receipt list #3", "pause --all", "token list"} {
		code, _, said := toryo(t, []string{"TORYO_TOKEN=x"}, strings.Fields(args)...)
		for _, want := range []string{"database.url_file: ", "sudo", "--config"} {
			if code != task.BadConfig.Info().Exit || !strings.Contains(said, want) {
				t.Errorf("%v: exit %d, %q is missing in %s", args, code, want, said)
			}
		}
		if args == "token list" {
			continue
		}
		if code, _, said := toryo(t, []string{"TORYO_TOKEN=x"}, append(strings.Fields(args), "--server", elsewhere)...); code != task.Unavailable.Info().Exit {
			t.Errorf("%v of a server elsewhere: exit %d: %s", args, code, said)
		}
		nothingHere(t, nil)
	}
	mustRun(t, nil, "__complete", "tasks", "show", "")
	if _, err := os.Stat(machine.Data); !os.IsNotExist(err) {
		t.Errorf("the data directory is there: %v", err)
	}
}

// The configuration of the machine has its data in one place, however the file is named.
//
//nolint:paralleltest // it changes the folder and the place of the machine
func TestTheDataOfTheMachine(t *testing.T) {
	machine := onMachine(t, "language: en\n")
	if err := os.Symlink(machine.File, "link.yaml"); err != nil {
		t.Fatal(err)
	}
	link, err := filepath.Abs("link.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if said := mustRun(t, nil, "token", "create", "--role", "viewer", "--name", "first"); !strings.HasPrefix(said, "toryo_") {
		t.Error(said)
	}
	elsewhere, folder := t.TempDir(), filepath.Dir(machine.File)
	for _, test := range []struct {
		name, folder string
		flags        []string
	}{
		{"found", elsewhere, nil},
		{"in full", elsewhere, []string{"--config", machine.File}},
		{"a link", elsewhere, []string{"--config", link}},
		{"here", folder, nil},
		{"relative", folder, []string{"--config", "./toryo.yaml"}},
	} {
		t.Chdir(test.folder)
		if said := mustRun(t, nil, append([]string{"token", "list"}, test.flags...)...); !strings.Contains(said, "first") {
			t.Errorf("%s: the tokens are %s", test.name, said)
		}
		file := []string{"config", "check", "--print"}
		if len(test.flags) > 0 {
			file = append(file, test.flags[1])
		}
		if said := mustRun(t, nil, file...); !strings.Contains(said, machine.Data) || !strings.Contains(said, "default for "+machine.File) {
			t.Errorf("%s: in force is %s", test.name, said)
		}
		_, said, wrong := toryo(t, []string{"PATH=" + os.Getenv("PATH")}, append([]string{"doctor"}, test.flags...)...)
		if !strings.Contains(said, machine.Data) || wrong != "" {
			t.Errorf("%s: doctor says %s and %s", test.name, said, wrong)
		}
		as := "$ toryo init --config "
		if os.Geteuid() != 0 {
			as = "$ sudo toryo init --config "
		}
		if test.folder == elsewhere && !strings.Contains(said, as) {
			t.Errorf("%s: the command of doctor is not for this installation:\n%s", test.name, said)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(machine.File), "data")); !os.IsNotExist(err) {
		t.Errorf("a second installation is there: %v", err)
	}
}
