package mirror

import (
	"context"
	"io"

	"github.com/toryo-dev/toryo/internal/forge"
	program "github.com/toryo-dev/toryo/internal/git"
)

// git runs the git program on mirrors.
type git struct {
	*program.Program
	hooks string
}

// command is one run of git.
type command struct {
	dir    string // a repository; empty for none
	args   []string
	remote *forge.Remote // what the command talks to, if anything
	input  io.Reader
}

// checks are settings by which objects are looked at before they are accepted.
var checks = append([]string{"fetch.fsckObjects=true", "receive.fsckObjects=true"}, tolerance("fetch")...)

// tolerated are faults of objects that old and well-meant repositories have and
// that harm nobody. Whatever could harm whoever checks it out is not here.
var tolerated = []string{
	"zeroPaddedFilemode", "missingSpaceBeforeDate", "badTimezone", "missingTaggerEntry", "zeroPaddedDate",
	"missingEmail", "missingNameBeforeEmail", "missingSpaceBeforeEmail", "badEmail", "badName", "badDate", "badDateOverflow",
}

func tolerance(what string) []string {
	var settings []string
	for _, fault := range tolerated {
		settings = append(settings, what+".fsck."+fault+"=ignore")
	}
	return settings
}

// run runs a command and returns what it wrote.
func (g git) run(ctx context.Context, c command) (string, error) {
	run := program.Command{Dir: c.dir, Args: c.args, Input: c.input}
	if c.remote != nil {
		run.Remote = &program.Remote{URL: c.remote.URL, Username: c.remote.Username, Password: c.remote.Password}
	}
	return g.Run(ctx, run)
}
