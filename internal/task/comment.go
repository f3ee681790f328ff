package task

import (
	"strings"
	"time"
)

// CommentKind says where on an item a comment stands.
type CommentKind string

// The kinds of comment.
const (
	ItemComment   CommentKind = "item"   // in the conversation of an issue or pull request
	ReviewComment CommentKind = "review" // on a line of a pull request's diff
)

// Comment is one comment of a person or a bot on an item. Its ID is the forge's
// own and stays the same when the comment is edited; it is unique among the
// comments of one kind on one item.
type Comment struct {
	ID        string
	Kind      CommentKind
	Author    string
	Body      string
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Edited reports whether the comment was changed after it was written.
func (c Comment) Edited() bool { return c.UpdatedAt.After(c.CreatedAt) }

// By reports whether the comment was written by the given login. Forges treat
// logins without regard to case.
func (c Comment) By(login string) bool { return SameLogin(c.Author, login) }

// SameLogin reports whether two logins name one account.
func SameLogin(a, b string) bool { return a != "" && strings.EqualFold(a, b) }
