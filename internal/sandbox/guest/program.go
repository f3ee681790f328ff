package guest

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/toryo-dev/toryo/internal/task"
)

// LinuxProgram is the name of the guest's program for Linux. Releases for other systems
// have it beside their own, for the same kind of processor: containers and pods are Linux.
const LinuxProgram = "toryo-guest"

// Program is what serves as the guest inside of containers and pods: on Linux this program
// itself, elsewhere the one for Linux beside it.
func Program() (string, error) {
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program) // packages link to it
	}
	if err != nil {
		return "", task.Wrap(task.Internal, err, "this program cannot be found")
	}
	return programFor(runtime.GOOS, program)
}

func programFor(system, program string) (string, error) {
	if system == "linux" {
		return program, nil
	}
	beside := filepath.Join(filepath.Dir(program), LinuxProgram)
	if info, err := os.Stat(beside); err != nil || !info.Mode().IsRegular() {
		return "", task.Errorf(task.Unsupported, "containers run a program for Linux, and there is no %s beside %s", LinuxProgram, filepath.Base(program)).
			WithHint("copy %s from the archive of the same release to %s", LinuxProgram, filepath.Dir(program))
	}
	return beside, nil
}
