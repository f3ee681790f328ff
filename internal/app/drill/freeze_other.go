//go:build !unix

package drill

import (
	"os"

	"github.com/toryo-dev/toryo/internal/task"
)

// Supported says whether processes can be broken here as the drill does it.
func Supported() error {
	return task.Errorf(task.Unsupported, "processes can be asked to end and be frozen on Linux and macOS only").
		WithHint("run the drill there, for example in a container or in WSL")
}

func freeze(*os.Process) {}

func thaw(*os.Process) {}
