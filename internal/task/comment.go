package task

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// CommentKind says where on an item a comment stands.
type CommentKind string

// The kinds of comment.
const (
	ItemComment   CommentKind = "item"   // in the conversation of an issue or pull request
	ReviewComment CommentKind = "review" // on a line of a pull request's diff

	// SummaryComment is the text of a submitted review. On forges where that is a
	// comment like any other it is an ItemComment.
	SummaryComment CommentKind = "summary"
)

// CommentChange says what became of a comment.
type CommentChange string

// The changes.
const (
	CommentNew     CommentChange = "new"
	CommentEdited  CommentChange = "edited"
	CommentDeleted CommentChange = "deleted"

	// CommentPresent is only in the log of a task: the comment was there when the task
	// was handed out.
	CommentPresent CommentChange = "present"
)

// Net is what several changes of one comment come to for somebody who was told of none
// of them, by the first and the last. It is empty if there is nothing to tell: the
// comment was written and deleted. A comment that was deleted and is there again was
// edited, or not even that.
func Net(first, last CommentChange) CommentChange {
	switch known := first != CommentNew; {
	case last == CommentDeleted && known:
		return CommentDeleted
	case last == CommentDeleted:
		return ""
	case known:
		return CommentEdited
	default:
		return CommentNew
	}
}

// Comment is one comment of a person or a bot on an item. Its ID is the forge's
// own and stays the same when the comment is edited; it is unique among the
// comments of one kind on one item.
//
// Everything that passes a comment on has it as it is here, so its JSON is that of the
// protocol between server and agents and of the journal. The journal leaves out the times,
// and of a refused comment also kind, place, access and text.
type Comment struct {
	ID     string      `json:"id"`
	Kind   CommentKind `json:"kind,omitempty" required:"true" enum:"item,review,summary"`
	Author string      `json:"author"`
	Body   string      `json:"body"`
	// About says more about where it stands: of a comment on a line the file and the
	// line, as path:12, and of the text of a review the verdict. It may change without
	// an edit.
	About     string    `json:"about,omitempty" doc:"Of a comment on a line the file and line, of the text of a review the verdict"`
	CreatedAt time.Time `json:"created_at,omitzero" required:"true"`
	UpdatedAt time.Time `json:"updated_at,omitzero" required:"true"`
}

// CommentEntry is a comment as a task is told of it: an entry of the task's comment log,
// of an assignment, of the signals and of the journal.
type CommentEntry struct {
	Comment                // of a deleted one, as it was last
	Position int64         `json:"position,omitempty" doc:"Its place among all that the task was told; see Signals"`
	Change   CommentChange `json:"change,omitempty" doc:"Whether it is new, was edited or was deleted" enum:"new,edited,deleted"`
	Access   string        `json:"access,omitempty" doc:"What the author may do in the repository"`
	// Before is empty if a run was not told of what the comment said before.
	Before  string    `json:"before,omitempty" doc:"The beginning of what an edited comment said before"`
	Refused Reason    `json:"refused,omitempty" doc:"The reason for which it is not to be taken up; then there is no text"`
	At      time.Time `json:"-"` // when the log got it
}

// CommentRef tells a comment from the others on its item.
type CommentRef struct {
	Kind CommentKind
	ID   string
}

// Ref returns what tells the comment from the others on its item.
func (c Comment) Ref() CommentRef { return CommentRef{c.Kind, c.ID} }

// Edited reports whether the comment was changed after it was written.
func (c Comment) Edited() bool { return c.UpdatedAt.After(c.CreatedAt) }

// By reports whether the comment was written by the given login. Forges treat
// logins without regard to case.
func (c Comment) By(login string) bool { return SameLogin(c.Author, login) }

// SameLogin reports whether two logins name one account.
func SameLogin(a, b string) bool { return a != "" && FoldLogin(a) == FoldLogin(b) }

// SameBot reports whether two logins are of one bot. What a GitHub App does is shown under the name
// of the App with [bot] behind it, while people assign an account of that name: no App can be
// assigned.
func SameBot(a, b string) bool {
	return SameLogin(strings.TrimSuffix(FoldLogin(a), "[bot]"), strings.TrimSuffix(FoldLogin(b), "[bot]"))
}

// SameRepository reports whether two names are of one repository: forges treat them as
// they do logins.
func SameRepository(a, b string) bool { return SameLogin(a, b) }

// FoldLogin is a login in the one spelling under which it can be looked up. Only the
// letters A to Z have another case here, as on the forges: Unicode would also make a
// "k" of the Kelvin sign and an "s" of the long s, and so one account of two.
func FoldLogin(login string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + ('a' - 'A')
		}
		return r
	}, login)
}

// TextMark begins what is left of the text of a comment when the text was kept for long
// enough.
const TextMark = "sha256:"

// MarkOf is what is left of a text: its hash, by which the text is known again.
func MarkOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return TextMark + hex.EncodeToString(sum[:])
}
