package forge

import (
	"log/slog"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Post is a text to be written.
//
// Writing it twice would make two comments. So every post has a marker, which
// the adapter hides in it, and a caller that does not know what became of an
// earlier attempt sets Repeat: the adapter then looks first, and if the comment
// is there it returns that one, with the text that it has.
type Post struct {
	Text   Text
	Marker Marker // none means that the post cannot be found again
	Repeat bool
}

// Body is the post as the forge gets it.
func (p Post) Body() string { return p.Text.With(p.Marker) }

// PullPost is a pull request to be opened.
type PullPost struct {
	Title Text
	Text  Text
	Head  string
	Base  string
	Draft bool
}

// PullEdit changes fields of a pull request. Nil fields stay.
type PullEdit struct {
	Title *Text
	Text  *Text
	Draft *bool
}

// Target is what a reaction is on: an item, or a comment in its conversation.
type Target struct {
	Key     task.Key
	Comment string // id; empty for the item itself
}

// Reaction is a kind of reaction that all forges know, by GitHub's names.
type Reaction string

// The reactions.
const (
	ThumbsUp   Reaction = "+1"
	ThumbsDown Reaction = "-1"
	Laugh      Reaction = "laugh"
	Hooray     Reaction = "hooray"
	Confused   Reaction = "confused"
	Heart      Reaction = "heart"
	Rocket     Reaction = "rocket"
	Eyes       Reaction = "eyes"
)

// ReactionKinds lists the reactions.
var ReactionKinds = []Reaction{ThumbsUp, ThumbsDown, Laugh, Hooray, Confused, Heart, Rocket, Eyes}

// ReactionBy is someone's reaction.
type ReactionBy struct {
	Reaction Reaction
	Login    string
}

// StatusState is the state of a commit, such as the result of its tests.
type StatusState string

// The states of a commit status.
const (
	StatusPending StatusState = "pending"
	StatusSuccess StatusState = "success"
	StatusFailure StatusState = "failure"
	StatusError   StatusState = "error"
)

// CommitStatus is the state of a commit under a context such as
// "toryo/review".
type CommitStatus struct {
	Commit      string // full hash
	Context     string
	State       StatusState
	Description string // one line; cut to 140 characters
	URL         string // for people; may be empty
}

// Remote is where git finds a repository. Its password never shows in a log.
type Remote struct {
	URL      string // a path on this machine for the board; never has a credential in it
	Username string
	Password string
}

// String leaves the password out.
func (r Remote) String() string { return r.URL }

// GoString leaves the password out.
func (r Remote) GoString() string { return r.URL }

// LogValue leaves the password out.
func (r Remote) LogValue() slog.Value { return slog.StringValue(r.URL) }

// maxDescription is how long the description of a status may be on every forge,
// in characters.
const maxDescription = 140

// ShortDescription is the description as one line that is not too long.
func (s CommitStatus) ShortDescription() string {
	return textfmt.Shorten(textfmt.OneLine(Clean(s.Description)), maxDescription)
}
