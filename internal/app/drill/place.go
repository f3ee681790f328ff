package drill

import (
	"context"
	"strconv"
)

// Place is the forge that the drill's tasks are on. Its methods are called by one
// goroutine.
type Place interface {
	// Settings are the lines of the configuration that lead to it.
	Settings() string
	// Import puts the repository in the folder there, under one name or several, once servers run.
	Import(ctx context.Context, folder string) error
	// Give opens an issue, assigns it to the bot and returns it. The task's change is to name
	// the number. It may be called again with the same title if it fails.
	Give(ctx context.Context, title string) (Item, error)
	// Look returns everything that is there.
	Look(ctx context.Context) (Content, error)
}

// Content is what is on the forge.
type Content struct {
	Issues   []Issue
	Pulls    []Pull
	Branches []Branch
}

// Item is an issue or a pull request.
type Item struct {
	Repository string
	Number     int64
}

func (i Item) String() string { return i.Repository + "#" + strconv.FormatInt(i.Number, 10) }

// Branch is a branch of a repository.
type Branch struct{ Repository, Name string }

// Issue is an issue as it is in the end.
type Issue struct {
	Item
	Assigned bool // to the bot
	Labels   []string
	Comments []string
}

// Pull is a pull request as it is in the end.
type Pull struct {
	Item
	Branch  string
	Head    string   // the commit
	Issues  []Item   // that it says it is for
	Reviews []string // of the bot: the commits that they are about
	Diff    string
}
