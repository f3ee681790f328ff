package phase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/environment/trial"
	"github.com/toryo-dev/toryo/internal/phase/mcp"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// Launch implements [mcp.Launcher] in the sandbox. A sandbox runs one command at a
// time and gives it no input, so that the program is left running in the
// background with two named pipes in the workspace, which both sides see.
func (b *workbench) Launch(ctx context.Context, command []string, environment map[string]string) (mcp.Process, error) {
	if err := b.run.Repository.Exclude(ctx, []string{trial.Folder}); err != nil {
		return mcp.Process{}, err
	}
	dir := fmt.Sprintf("%s/mcp-%d", trial.Folder, b.launched.Add(1))
	inside := shellQuote(b.mount() + "/" + dir)
	if _, err := b.shell(ctx, fmt.Sprintf("mkdir -p %s && rm -f %[1]s/in %[1]s/out && mkfifo %[1]s/in %[1]s/out", inside)); err != nil {
		return mcp.Process{}, err
	}
	// Neither side can open its end of a pipe before the other has. Ends that are
	// opened both ways do not wait, and hold the pipes until both sides have them.
	var opened pipes
	defer func() { _ = opened.close() }()
	for _, name := range []string{"in", "out"} {
		if _, err := opened.open(b.files.in, dir+"/"+name, os.O_RDWR); err != nil {
			return mcp.Process{}, err
		}
	}
	id, err := b.shell(ctx, startLine(inside, b.mount(), command, environment))
	if err != nil {
		return mcp.Process{}, err
	}
	var ends pipes
	input, err := ends.open(b.files.in, dir+"/in", os.O_WRONLY)
	if err != nil {
		return mcp.Process{}, err
	}
	output, err := ends.open(b.files.in, dir+"/out", os.O_RDONLY)
	if err != nil {
		return mcp.Process{}, errors.Join(err, ends.close())
	}
	stop := func() error {
		err := ends.close()
		_, _ = b.shell(context.WithoutCancel(ctx), "kill -- -"+id+" 2>/dev/null; true") // with the sandbox it is gone anyway
		return err
	}
	return mcp.Process{Input: input, Output: output, Stop: stop}, nil
}

// startLine starts a program in the background and prints its process group.
func startLine(pipes, mount string, command []string, environment map[string]string) string {
	// The variables are set in the shell: among the arguments of a program they could
	// be read by everybody on the machine.
	var set strings.Builder
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		fmt.Fprintf(&set, "export %s=%s; ", name, shellQuote(environment[name]))
	}
	var words []string
	for _, word := range command {
		words = append(words, shellQuote(word))
	}
	return fmt.Sprintf("(%scd %s && exec 7<%s/in 8>%[3]s/out && { setsid %s <&7 >&8 2>%[3]s/log 7<&- 8>&- & echo $!; })",
		set.String(), shellQuote(mount), pipes, strings.Join(words, " "))
}

func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// shell runs a command of our own in the sandbox and returns what it printed.
func (b *workbench) shell(ctx context.Context, line string) (string, error) {
	var output bytes.Buffer
	exit, err := b.Run(ctx, tool.Command{Line: line}, &output)
	text := strings.TrimSpace(output.String())
	if err == nil && exit.Code != 0 {
		err = task.Errorf(task.Unavailable, "a program could not be started in the sandbox: %s", tool.Shorten(text, 500))
	}
	return text, err
}

// pipes are opened pipes.
type pipes []*os.File

// open opens a pipe below the root, and nothing else: a link that leads out is
// refused, and no open waits.
func (p *pipes) open(in *workdir.Dir, name string, how int) (*os.File, error) {
	file, err := in.OpenPipe(name, how)
	if err != nil {
		return nil, task.Wrap(task.Unavailable, err, "a pipe to the sandbox cannot be opened")
	}
	*p = append(*p, file)
	return file, nil
}

func (p *pipes) close() error {
	var failures []error
	for _, file := range *p {
		if err := file.Close(); !errors.Is(err, os.ErrClosed) { // whoever used it may have closed it
			failures = append(failures, err)
		}
	}
	*p = nil
	return errors.Join(failures...)
}
