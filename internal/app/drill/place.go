package drill

import "context"

// Place is the forge that the drill's tasks are on. Its methods are called by one
// goroutine.
type Place interface {
	// Settings are the lines of the configuration that lead to it.
	Settings() string
	// Import puts the repository in the folder there, once servers run.
	Import(ctx context.Context, folder string) error
	// Give opens an issue and assigns it to the bot. The task's change is to name
	// the number of the issue.
	Give(ctx context.Context, title string) error
	// Look returns everything that is there.
	Look(ctx context.Context) ([]Issue, []Pull, error)
}

// Issue is an issue as it is in the end.
type Issue struct {
	Number   int64
	Labels   []string
	Comments []string
}

// Pull is a pull request as it is in the end.
type Pull struct {
	Number int64
	Issues []int64 // that it says it is for
	Diff   string
}
