package drill

import "context"

// Place is the forge that the drill's tasks are on. Its methods are called by one
// goroutine.
type Place interface {
	// Settings are the lines of the configuration that lead to it.
	Settings() string
	// Import puts the repository in the folder there, once servers run.
	Import(ctx context.Context, folder string) error
	// Give opens an issue, assigns it to the bot and returns its number. The task's change is to
	// name the number. It may be called again with the same title if it fails.
	Give(ctx context.Context, title string) (int64, error)
	// Look returns everything that is there.
	Look(ctx context.Context) (Content, error)
}

// Content is what is on the forge.
type Content struct {
	Issues   []Issue
	Pulls    []Pull
	Branches []string
}

// Issue is an issue as it is in the end.
type Issue struct {
	Number   int64
	Assigned bool // to the bot
	Labels   []string
	Comments []string
}

// Pull is a pull request as it is in the end.
type Pull struct {
	Number int64
	Branch string
	Issues []int64 // that it says it is for
	Diff   string
}
