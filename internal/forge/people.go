package forge

import "github.com/toryo-dev/toryo/internal/task"

// What follows is for people who act on the board in their own name. It is not
// part of the port: what they write is kept as they wrote it, and so it is never a
// [Text].

// Listing says which items to show. Zero fields do not narrow.
type Listing struct {
	Repository string
	Kind       task.ItemKind
	State      ItemState
	Labels     []string // all of these
	Assignee   string
}

// NewIssue is an issue that a person opens.
type NewIssue struct {
	Title     string
	Body      string
	Labels    []string
	Assignees []string
}

// NewPull is a pull request that a person opens. Without a base it is for the
// default branch.
type NewPull struct {
	Title string
	Body  string
	Head  string
	Base  string
	Draft bool
}

// NewReview is a review that a person submits.
type NewReview struct {
	Verdict Verdict
	Body    string
	Lines   []LineRemark
	Commit  string // the head that was reviewed; empty means the one that is there
}

// LineRemark is what a person says about a line.
type LineRemark struct {
	Anchor Anchor
	Body   string
}
