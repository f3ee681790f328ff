package guest

import (
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/disk"
	"github.com/toryo-dev/toryo/internal/task"
)

// diskGuard holds a sandbox to its disk limit, from its start to its end. It is at the
// end that can see the folders: at the host where they are shared, in the guest
// otherwise. It is for one goroutine at a time.
type diskGuard struct {
	watch   disk.Watch
	full    int  // how many commands in a row have filled the disk
	began   bool // a command has begun, for which full does not count yet
	filling bool // the host puts files in
}

const (
	// smallFile is the largest file that a command may write while the sandbox takes
	// more of the disk than it may: enough for a shell to leave its state.
	smallFile = 1 << 20
	// mostFull is how many commands in a row may fill the disk, with what they leave in
	// the background, before the sandbox is ended.
	mostFull = 4
)

// look says whether the limit is exceeded, once for each time that it is.
func (d *diskGuard) look() sandbox.Limit {
	if d.watch.Exceeded(time.Now()) {
		if d.began && !d.filling {
			d.full++
			d.began = false
		}
		return sandbox.DiskLimit
	}
	return sandbox.NoLimit
}

// atEnd is look for the end of a command.
func (d *diskGuard) atEnd() sandbox.Limit {
	d.watch.CommandEnded()
	return d.look()
}

// begin says how large the files of the next command may be. On error the sandbox has
// filled its disk again and again, and is to be ended.
func (d *diskGuard) begin(most int64) (int64, error) {
	d.began = true
	if !d.watch.Over() {
		d.full = 0
		return most, nil
	}
	if d.full >= mostFull {
		return 0, sandbox.Exhausted(task.Errorf(task.Unavailable, "the sandbox was ended: it took more of the disk than it may, again and again"))
	}
	return min(most, smallFile), nil
}
