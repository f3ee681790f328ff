package mirror

import (
	"errors"

	"github.com/toryo-dev/toryo/internal/forge"
	program "github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

// signs tell, by what git says, what kind of failure it was. The first that fits
// counts. Git says it in English: see environment.
var signs = []struct {
	text string
	code task.Code
}{
	{"Authentication failed", task.Unauthorized},
	{"could not read Username", task.Unauthorized},
	{"could not read Password", task.Unauthorized},
	{"returned error: 401", task.Unauthorized},
	{"returned error: 403", task.Forbidden},
	{"protected branch", task.Forbidden},
	{"hook declined", task.Forbidden},
	{"returned error: 404", task.NotFound},
	{"/' not found", task.NotFound},
	{"repository not found", task.NotFound},
	{"Repository not found", task.NotFound},
	{"unable to update url base from redirection", task.NotFound},
	{"returned error: 301", task.NotFound},
	{"returned error: 302", task.NotFound},
	{"returned error: 307", task.NotFound},
	{"returned error: 308", task.NotFound},
	{"does not appear to be a git repository", task.NotFound},
	{"couldn't find remote ref", task.NotFound},
	{"stale info", task.Conflict},
	{"non-fast-forward", task.Conflict},
	{"fetch first", task.Conflict},
	{"remote rejected", task.Forbidden},
	{"died of signal 25", task.TooLarge}, // SIGXFSZ
	{"File size limit exceeded", task.TooLarge},
	{"file write error: File too large", task.TooLarge},
	{"exceeds maximum allowed size", task.TooLarge},
	{"fsck error", task.Invalid},
	{"bad config line", task.Internal},
}

// coded gives an error of git that talked to a forge the code of package forge.
// What is not known is Unavailable: the network fails in many ways.
func coded(err error, message string) error {
	var already *task.Error
	if err == nil || errors.As(err, &already) {
		return err
	}
	code := task.Unavailable
	if said, is := errors.AsType[*program.RunError](err); is && !said.Ended {
		for _, sign := range signs {
			if said.Said(sign.text) {
				code = sign.code
				break
			}
		}
	}
	return &forge.Error{Err: task.Wrap(code, err, message)}
}
