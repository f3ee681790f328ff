package drill

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
)

// goneWithin is how long processes may take to go after whoever started them has ended.
const goneWithin = 10 * time.Second

// leftOver says what is still there when everything has ended: processes that have to do with
// the folder of the drill. On systems without /proc nothing is found.
func (s *site) leftOver(ctx context.Context) (wrong []string) {
	deadline := time.Now().Add(goneWithin)
	for {
		wrong = processesIn(s.drill.Dir)
		if len(wrong) == 0 || time.Now().After(deadline) || lifecycle.Sleep(ctx, time.Second/5) != nil {
			return wrong
		}
	}
}

// processesIn are the processes other than this one with the folder in their arguments, or
// that are in it.
func processesIn(dir string) (found []string) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		arguments, _ := os.ReadFile("/proc/" + entry.Name() + "/cmdline") // it may have ended
		in, _ := os.Readlink("/proc/" + entry.Name() + "/cwd")
		if bytes.Contains(arguments, []byte(dir+"/")) || in == dir {
			found = append(found, fmt.Sprintf("process %d is left over: %s", pid, bytes.ReplaceAll(arguments, []byte{0}, []byte{' '})))
		}
	}
	return found
}
