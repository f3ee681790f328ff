package guest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// LinuxProgram is the name of the program that is a guest and nothing else. Releases have
// it beside the program, for the same kind of processor: it is for Linux, as containers and
// pods are. It is a tenth of the program's size and takes a fifth of its memory.
const LinuxProgram = "toryo-guest"

// version is that of the build, set by the linker in the program and in its guest alike.
var version string

// versionTimeout is for a program that prints one line.
const versionTimeout = 10 * time.Second

// Program is what serves as the guest inside of sandboxes: [LinuxProgram] beside this
// program. On Linux this program serves where there is none, or one of another build.
func Program() (string, error) { return found() }

// found looks once. Files that are replaced while the program runs are used from then on: whether
// the guest still fits the program, each sandbox says in its greeting; see [Client.Hello].
var found = sync.OnceValues(func() (string, error) {
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program) // packages link to it
	}
	if err != nil {
		return "", task.Wrap(task.Internal, err, "this program cannot be found")
	}
	return programFor(runtime.GOOS, program, version)
})

func programFor(system, program, version string) (string, error) {
	beside := filepath.Join(filepath.Dir(program), LinuxProgram)
	info, err := os.Stat(beside)
	there := err == nil && info.Mode().IsRegular()
	switch {
	case system == "linux" && (!there || version == "" || versionOf(beside) != version):
		return program, nil
	case !there:
		return "", task.Errorf(task.Unsupported, "containers run a program for Linux, and there is no %s beside %s", LinuxProgram, filepath.Base(program)).
			WithHint("copy %s from the archive of the same release to %s", LinuxProgram, filepath.Dir(program))
	default:
		return beside, nil
	}
}

// versionOf asks a guest's program for its version. It is "" of one that does not say.
func versionOf(program string) string {
	ctx, cancel := context.WithTimeout(context.Background(), versionTimeout)
	defer cancel()
	said, err := exec.CommandContext(ctx, program, versionName, "guest").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(said), "\n")
}
