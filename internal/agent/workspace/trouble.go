package workspace

import (
	"errors"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

// signs tell, by what git says, what kind of failure it was. The first that fits
// counts. The server refuses a token only when the run is over.
var signs = []struct {
	text string
	code task.Code
}{
	{"the server has trouble of its own", task.Unavailable},
	{"larger than what is kept for other servers", task.TooLarge},
	{"Authentication failed", task.LeaseLost},
	{"could not read Username", task.LeaseLost},
	{"could not read Password", task.LeaseLost},
	{"returned error: 401", task.LeaseLost},
	{"returned error: 403", task.LeaseLost},
	{"the run is over", task.LeaseLost},
	{"hook declined", task.LeaseLost},
	{"returned error: 404", task.NotFound},
	{"/' not found", task.NotFound},
	{"does not appear to be a git repository", task.NotFound},
	{"couldn't find remote ref", task.NotFound},
	{"not our ref", task.NotFound},
	{"refusing to fetch into", task.Conflict},
	{"non-fast-forward", task.Conflict},
	{"exceeds maximum allowed size", task.TooLarge},
	{"File size limit exceeded", task.TooLarge},
	{"file write error: File too large", task.TooLarge},
	{"fsck error", task.Invalid},
	{"fsckObjects", task.Invalid},
	{"No space left on device", task.DataDir},
}

// coded gives an error of git that talked to the server a code. What is not known
// is Unavailable: the network fails in many ways.
func coded(err error, message string) error {
	said, is := errors.AsType[*git.RunError](err)
	if err == nil || !is {
		return err
	}
	if said.Ended {
		return task.Wrap(task.Interrupted, err, message)
	}
	for _, sign := range signs {
		if said.Said(sign.text) {
			return task.Wrap(sign.code, err, message)
		}
	}
	return task.Wrap(task.Unavailable, err, message)
}
