package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/manual"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/task"
)

// starters begin something where they are called, and are meant to.
var starters = map[string]bool{
	"toryo serve": true, "toryo up": true, "toryo agent": true, "toryo run": true, "toryo eval": true, "toryo demo": true, "toryo drill": true, "toryo egress": true,
	"toryo doctor": true, "toryo env setup": true, "toryo env detect": true, "toryo init": true,
}

// given are arguments and flags that let a command come as far as its database.
var given = map[string][]string{
	"TASK": {"team/app#3"}, "RUN|TASK": {"team/app#3"}, "ITEM": {"team/app#3"}, "PLAN": {"1"}, "LABEL": {"bug"}, "LOGIN": {"alice"}, "PATH|URL": {"."},
	"RECEIPT": {"01990000-0000-7000-8000-000000000000"}, "viewer|operator|admin": {"admin"}, "none|read|write|admin": {"read"},
	"toryo token create": {"--role", "viewer"}, "toryo board issue create": {"--repo", "team/app", "--title", "x"},
	"toryo board pr create": {"--repo", "team/app", "--title", "x", "--head", "y"}, "toryo board issue comment": {"--body", "x"}, "toryo board pr comment": {"--body", "x"},
	"toryo board pr reply": {"--body", "x"},
}

// allCommands are the commands that do something, also those that are not shown.
func allCommands(c *cobra.Command) (all []*cobra.Command) {
	if c.Runnable() && (!c.HasSubCommands() || c.Flags().Lookup("data") != nil) {
		all = append(all, c)
	}
	for _, below := range c.Commands() {
		all = append(all, allCommands(below)...)
	}
	return all
}

func wordsOf(c *cobra.Command) []string { return strings.Fields(c.CommandPath())[1:] }

// A command that reads or manages an installation makes none where it is called, and says
// where it looked for one and how to name another.
//
//nolint:paralleltest // it is called in another folder
func TestCommandsMakeNoInstallationHere(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	if _, err := os.Stat(config.Machine.File); err == nil {
		t.Fatalf("this machine has a %s, which the test would read", config.Machine.File)
	}
	looked := 0
	for _, c := range allCommands(rootCommand(site.Program{})) {
		path := c.CommandPath()
		if c.Flags().Lookup("data") == nil || starters[path] {
			continue
		}
		looked++
		args := append(wordsOf(c), given[path]...)
		for _, name := range cli.Arguments(c) {
			if known := given[name]; known != nil {
				args = append(args, known...)
			} else {
				args = append(args, "x")
			}
		}
		code, _, said := toryo(t, []string{"PATH=" + os.Getenv("PATH")}, args...)
		asksFirst := path == "toryo user create" || path == "toryo user password" // for the password, which is not there
		for _, want := range []string{"data directory: " + filepath.Join(folder, "data") + ", the default", "there is neither toryo.yaml here nor /etc/toryo/toryo.yaml", "--data", "--config"} {
			if !asksFirst && (code != task.DataDir.Info().Exit || !strings.Contains(said, want)) {
				t.Errorf("%v: exit %d, %q is missing in %s", args, code, want, said)
			}
		}
		if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
			t.Fatalf("%v leaves %v, %v", args, left, err)
		}
	}
	if looked < 30 {
		t.Errorf("only %d commands were looked at", looked)
	}
}

// Commands that begin an installation do so where somebody has said that it is to be, and say
// so.
//
//nolint:paralleltest // it is called in another folder
func TestCommandsThatBeginAnInstallation(t *testing.T) {
	for name, test := range map[string]struct {
		file    string // toryo.yaml in the folder
		environ string
		flags   []string
	}{
		"flag":          {flags: []string{"--data", "kept"}},
		"variable":      {environ: "TORYO_DATA_DIR=kept"},
		"configuration": {file: "data_dir: kept\n"},
		"folder":        {file: "language: en\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			folder := "kept"
			if test.file != "" {
				if err := os.WriteFile(cli.DefaultFile, []byte(test.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if name == "folder" {
				folder = "data"
			}
			words := append([]string{"token", "create", "--role", "viewer", "--name", "laptop"}, test.flags...)
			code, token, said := toryo(t, []string{test.environ}, words...)
			here, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			if code != 0 || !strings.HasPrefix(token, "toryo_") || said != "created a new installation in "+filepath.Join(here, folder)+"\n" {
				t.Errorf("exit %d: %q, %q", code, token, said)
			}
			if code, _, said = toryo(t, []string{test.environ}, words...); code != 0 || said != "" {
				t.Errorf("exit %d: the second time it says %q", code, said)
			}
		})
	}
}

// Too few arguments: the command says which one is missing.
func TestMissingArgumentsAreNamed(t *testing.T) {
	t.Parallel()
	looked := 0
	for _, c := range allCommands(rootCommand(site.Program{})) {
		names := cli.Arguments(c)
		for n := range names {
			looked++
			args := wordsOf(c)
			for range n {
				args = append(args, "x")
			}
			want := c.CommandPath() + " needs " + names[n]
			if said := wantExit(t, task.Usage, args...); !strings.Contains(said, want) || strings.Contains(said, "arg(s)") || !strings.Contains(said, "see "+c.CommandPath()+" --help") {
				t.Errorf("%v says %q, want %q", args, said, want)
			}
		}
	}
	if looked < 30 {
		t.Errorf("only %d arguments were left out", looked)
	}
	if said := wantExit(t, task.Usage, "tasks", "show"); !strings.Contains(said, "toryo tasks show needs TASK, such as team/app#3; '#3' needs quotes, since a shell takes it for a comment; see toryo tasks show --help") {
		t.Error(said)
	}
}

// Too many arguments: the command says what it takes.
func TestTooManyArgumentsAreNamed(t *testing.T) {
	t.Parallel()
	for _, c := range allCommands(rootCommand(site.Program{})) {
		if strings.HasSuffix(c.Use, "...") || c.Args == nil {
			continue
		}
		args := append(wordsOf(c), "1", "2", "3", "4")
		if said := wantExit(t, task.Usage, args...); strings.Contains(said, "arg(s)") || strings.Contains(said, "unknown command") {
			t.Errorf("%v says %q", args, said)
		}
	}
}

// There is a manual page for every command that is shown, and it has what the help has.
func TestManualPages(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "man")
	mustRun(t, nil, "man", folder)
	pages := 0
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		pages++
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + "." + manual.Section
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Error(err)
			return
		}
		plain := strings.NewReplacer(`\-`, "-", `\e`, `\`, `\&`, "").Replace(string(text))
		for _, want := range []string{".TH ", ".SH NAME\n" + strings.TrimSuffix(name, ".1") + " - " + c.Short, ".SH DESCRIPTION\n"} {
			if !strings.Contains(plain, want) {
				t.Errorf("%s has no %q", name, want)
			}
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, ".") && !slices.Contains([]string{".TH", ".SH", ".PP", ".TP", ".nf", ".fi", ".BR"}, line[:min(3, len(line))]) {
				t.Errorf("%s has the line %q", name, line)
			}
		}
		for _, below := range c.Commands() {
			look(below)
		}
	}
	root := rootCommand(site.Program{})
	look(root)
	for _, want := range []string{"toryo-completion-bash.1", "toryo-task-names.1"} {
		if _, err := os.Stat(filepath.Join(folder, want)); err != nil {
			t.Error(err)
		}
	}
	if pages < 60 {
		t.Errorf("only %d pages", pages)
	}
}
