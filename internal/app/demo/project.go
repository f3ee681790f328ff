package demo

import (
	"context"
	_ "embed" // the project, the issue and the script
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/toryo-dev/toryo/internal/task"
)

var (
	//go:embed project.txtar
	project []byte
	//go:embed issue.md
	issue string
	//go:embed comment.md
	comment string
	//go:embed script.yaml
	script []byte
)

// Repository is the name of the sample repository on the board.
const Repository = "demo/rooms"

// WriteScript writes what the scripted model answers into a file of the folder.
func WriteScript(folder string) (file string, err error) {
	file = filepath.Join(folder, "demo-script.yaml")
	if err := os.WriteFile(file, script, 0o600); err != nil {
		return "", task.Wrap(task.DataDir, err, "the script of the demo cannot be written")
	}
	return file, nil
}

// writeProject makes the sample repository in a folder that is empty.
func writeProject(ctx context.Context, folder string) error {
	for _, file := range txtar.Parse(project).Files {
		name := filepath.Join(folder, filepath.FromSlash(file.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			return task.Wrap(task.DataDir, err, "the sample repository cannot be written")
		}
		if err := os.WriteFile(name, file.Data, 0o600); err != nil {
			return task.Wrap(task.DataDir, err, "the sample repository cannot be written")
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "--all"},
		{"-c", "user.name=Hanako", "-c", "user.email=hanako@example.com", "-c", "commit.gpgsign=false", "commit", "--quiet", "-m", "Compute floor areas"},
	} {
		command := exec.CommandContext(ctx, "git", args...)
		command.Dir = folder
		// No key and no token of ours is for git.
		command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "LC_ALL=C", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_SYSTEM=" + os.DevNull}
		if said, err := command.CombinedOutput(); err != nil {
			return task.Wrap(task.NotReady, err, "git cannot make the sample repository: "+strings.TrimSpace(string(said))).WithHint("install git")
		}
	}
	return nil
}
