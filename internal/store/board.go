package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// The board is a forge of our own, for people without one. Its git repositories
// lie on disk; everything else about it is here.

// BoardRepository is a repository on the board.
type BoardRepository struct {
	Name          string // "owner/name"
	DefaultBranch string
	CreatedAt     time.Time
}

// BoardRepositories keeps the board's repositories.
type BoardRepositories interface {
	// AddBoardRepository stores a repository; Conflict if the name is taken.
	AddBoardRepository(ctx context.Context, r BoardRepository) (BoardRepository, error)
	// BoardRepository returns one repository.
	BoardRepository(ctx context.Context, name string) (BoardRepository, error)
	// ListBoardRepositories returns all repositories.
	ListBoardRepositories(ctx context.Context) ([]BoardRepository, error)
}

// BoardState says whether an item is open.
type BoardState string

// The states of a board item. Only pull requests are merged.
const (
	BoardOpen   BoardState = "open"
	BoardClosed BoardState = "closed"
	BoardMerged BoardState = "merged"
)

// BoardItem is an issue or a pull request on the board. Both draw their numbers
// from one sequence per repository.
type BoardItem struct {
	Repository string
	Number     int64
	Kind       task.ItemKind
	Title      string
	Body       string
	Author     string
	State      BoardState
	Labels     []string // in the order in which they were put on
	Assignees  []string
	Head       string // branches of a pull request
	Base       string
	Draft      bool
	CreatedAt  time.Time
	UpdatedAt  time.Time // changes with everything that happens to the item
}

// BoardEdit changes fields of an item. Nil fields stay.
type BoardEdit struct {
	Title *string
	Body  *string
	State *BoardState
	Draft *bool
}

// BoardFilter narrows a listing of items. Zero fields do not narrow.
type BoardFilter struct {
	Repository string
	Kind       task.ItemKind
	State      BoardState
	Label      string
	Assignee   string
	Head       string
	// UpdatedSince leaves out items to which nothing happened since.
	UpdatedSince time.Time
}

// BoardEvent is one entry of an item's timeline.
type BoardEvent struct {
	Actor   string
	Kind    BoardEventKind
	Subject string // the label, the assignee, the new state, the field that was edited
	At      time.Time
}

// BoardEventKind says what happened to an item.
type BoardEventKind string

// The kinds of timeline entry.
const (
	BoardLabeled    BoardEventKind = "labeled"
	BoardUnlabeled  BoardEventKind = "unlabeled"
	BoardAssigned   BoardEventKind = "assigned"
	BoardUnassigned BoardEventKind = "unassigned"
	BoardEdited     BoardEventKind = "edited"
	BoardStateSet   BoardEventKind = "state"
)

// BoardItems keeps issues and pull requests. Each change names who makes it, and
// is an entry in the timeline if it changed anything.
type BoardItems interface {
	// AddBoardItem stores an open item and returns it with its number; NotFound
	// if the repository does not exist. Labels and assignees that it comes with
	// are entries in the timeline, made by the author.
	AddBoardItem(ctx context.Context, item BoardItem) (BoardItem, error)
	// BoardItem returns one item.
	BoardItem(ctx context.Context, repository string, number int64) (BoardItem, error)
	// ListBoardItems returns the items that pass the filter.
	ListBoardItems(ctx context.Context, filter BoardFilter) ([]BoardItem, error)
	// EditBoardItem changes fields of an item and returns it as it is then. What
	// is merged stays so: another state is a Conflict then.
	EditBoardItem(ctx context.Context, repository string, number int64, edit BoardEdit, actor string) (BoardItem, error)
	// SetBoardLabel puts a label on an item or takes it off.
	SetBoardLabel(ctx context.Context, repository string, number int64, label string, on bool, actor string) error
	// SetBoardAssignee assigns a user to an item or unassigns it. Logins are
	// compared without regard to case.
	SetBoardAssignee(ctx context.Context, repository string, number int64, login string, on bool, actor string) error
	// BoardTimeline returns what happened to an item.
	BoardTimeline(ctx context.Context, repository string, number int64) ([]BoardEvent, error)
}

// BoardComment is a comment in the conversation of an item.
type BoardComment struct {
	ID         string
	Repository string
	Number     int64
	Author     string
	Body       string
	CreatedAt  time.Time
	UpdatedAt  time.Time
}

// BoardComments keeps comments.
type BoardComments interface {
	// AddBoardComment stores a comment and returns it with its id; NotFound if
	// the item does not exist.
	AddBoardComment(ctx context.Context, c BoardComment) (BoardComment, error)
	// EditBoardComment changes a comment's text and returns it as it is then.
	EditBoardComment(ctx context.Context, id, body string) (BoardComment, error)
	// DeleteBoardComment removes a comment.
	DeleteBoardComment(ctx context.Context, id string) error
	// BoardComments returns the comments of an item.
	BoardComments(ctx context.Context, repository string, number int64) ([]BoardComment, error)
}

// BoardReview is a review of a pull request on the board.
type BoardReview struct {
	ID         string
	Repository string
	Number     int64
	Author     string
	Verdict    BoardVerdict
	Body       string
	Commit     string
	Comments   json.RawMessage // comments on lines, as the board keeps them
	CreatedAt  time.Time
}

// BoardVerdict is what a review comes to.
type BoardVerdict string

// The verdicts.
const (
	BoardApprove        BoardVerdict = "approve"
	BoardRequestChanges BoardVerdict = "request_changes"
	BoardRemark         BoardVerdict = "comment"
)

// BoardReviews keeps reviews of the board's pull requests.
type BoardReviews interface {
	// AddBoardReview stores a review and returns it with its id; NotFound if
	// there is no such pull request.
	AddBoardReview(ctx context.Context, r BoardReview) (BoardReview, error)
	// BoardReviews returns the reviews of a pull request.
	BoardReviews(ctx context.Context, repository string, number int64) ([]BoardReview, error)
}
