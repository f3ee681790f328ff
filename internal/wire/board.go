package wire

import (
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// MaxText is how many bytes a text may have that a person puts on the board.
const MaxText = 256 << 10

// CheckText refuses texts that are too long for the board.
func CheckText(texts ...string) error {
	for _, text := range texts {
		if len(text) > MaxText {
			return task.Errorf(task.TooLarge, "the text has %d bytes; %d are allowed", len(text), MaxText)
		}
	}
	return nil
}

// BoardRepository is a repository on the board.
type BoardRepository struct {
	Name          string `json:"name" example:"owner/name"`
	DefaultBranch string `json:"default_branch,omitempty" doc:"Missing while there is no commit"`
}

// BoardRepositories is a listing of repositories.
type BoardRepositories struct {
	Repositories []BoardRepository `json:"repositories"`
}

// BoardItem is an issue or a pull request on the board.
type BoardItem struct {
	Item       string    `json:"item" doc:"Its name" example:"owner/name#3"`
	Repository string    `json:"repository"`
	Number     int64     `json:"number"`
	Kind       string    `json:"kind" enum:"issue,pull"`
	Title      string    `json:"title"`
	Body       string    `json:"body"`
	State      string    `json:"state" enum:"open,closed,merged"`
	Author     string    `json:"author"`
	Labels     []string  `json:"labels"`
	Assignees  []string  `json:"assignees"`
	CreatedAt  time.Time `json:"created_at"`
	UpdatedAt  time.Time `json:"updated_at"`
	Head       string    `json:"head,omitempty" doc:"The branch to be merged, of a pull request"`
	HeadCommit string    `json:"head_commit,omitempty" doc:"The commit there; missing in listings and if the branch is gone"`
	Base       string    `json:"base,omitempty" doc:"The branch to merge into"`
	Draft      bool      `json:"draft,omitempty"`
}

// BoardItems is a listing of items.
type BoardItems struct {
	Items []BoardItem `json:"items"`
}

// BoardDetails is an item with all that belongs to it.
type BoardDetails struct {
	BoardItem
	LinkedPulls []BoardLink    `json:"linked_pulls,omitempty" doc:"Pull requests whose text names the issue"`
	Comments    []BoardComment `json:"comments"`
	Timeline    []BoardEvent   `json:"timeline"`
	Reviews     []BoardReview  `json:"reviews,omitempty"`
	Threads     []BoardThread  `json:"threads,omitempty"`
}

// BoardLink is a pull request that is about an issue.
type BoardLink struct {
	Item  string `json:"item" example:"owner/name#4"`
	State string `json:"state" enum:"open,closed,merged"`
}

// BoardComment is a comment on the board.
type BoardComment struct {
	ID        string    `json:"id"`
	Author    string    `json:"author"`
	Body      string    `json:"body"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at" doc:"Later than created_at if it was edited"`
}

// BoardComments is a conversation, oldest first.
type BoardComments struct {
	Comments []BoardComment `json:"comments"`
}

// BoardEvent is something that happened to an item.
type BoardEvent struct {
	Actor   string    `json:"actor"`
	Kind    string    `json:"kind" enum:"labeled,unlabeled,assigned,unassigned,edited,state"`
	Subject string    `json:"subject" doc:"The label, the assignee, the field that was edited or the new state"`
	At      time.Time `json:"at"`
}

// BoardTimeline is what happened to an item, oldest first.
type BoardTimeline struct {
	Timeline []BoardEvent `json:"timeline"`
}

// BoardReview is a review of a pull request.
type BoardReview struct {
	ID      string    `json:"id"`
	Author  string    `json:"author"`
	Verdict string    `json:"verdict" enum:"approve,request_changes,comment"`
	Body    string    `json:"body"`
	Commit  string    `json:"commit" doc:"The head that was reviewed"`
	At      time.Time `json:"at"`
}

// BoardLine is a line of a diff.
type BoardLine struct {
	Path string `json:"path"`
	Line int    `json:"line" minimum:"0" doc:"Counts from 1; 0 if the diff no longer has it"`
	Side string `json:"side,omitempty" enum:"new,old" default:"new" doc:"The file as it is, or as it was before"`
}

// BoardThread is a conversation on a line.
type BoardThread struct {
	ID       string         `json:"id"`
	On       BoardLine      `json:"on"`
	Outdated bool           `json:"outdated,omitempty" doc:"The line has changed since"`
	Resolved bool           `json:"resolved,omitempty"`
	Comments []BoardComment `json:"comments"`
}

// BoardReviews is what was said in reviews of a pull request, oldest first.
type BoardReviews struct {
	Reviews []BoardReview `json:"reviews"`
	Threads []BoardThread `json:"threads"`
}

// BoardDiff is what a pull request changes.
type BoardDiff struct {
	Base  string `json:"base" doc:"The commit that it starts from"`
	Head  string `json:"head"`
	Patch string `json:"patch" doc:"As git diff writes it"`
}

// NewBoardRepository asks for a repository to be imported.
type NewBoardRepository struct {
	Name   string `json:"name" example:"owner/name"`
	Source string `json:"source" doc:"Where to clone from: a URL with https, http or git; for administrators also a folder of the server's machine"`
}

// NewBoardIssue asks for an issue.
type NewBoardIssue struct {
	Title     string   `json:"title"`
	Body      string   `json:"body,omitempty" maxLength:"262144"`
	Labels    []string `json:"labels,omitempty" maxItems:"100"`
	Assignees []string `json:"assignees,omitempty" maxItems:"100"`
}

// NewBoardPull asks for a pull request between two branches.
type NewBoardPull struct {
	Title string `json:"title"`
	Body  string `json:"body,omitempty" maxLength:"262144"`
	Head  string `json:"head" doc:"The branch to be merged"`
	Base  string `json:"base,omitempty" doc:"The branch to merge into; the default branch if it is missing"`
	Draft bool   `json:"draft,omitempty"`
}

// BoardText is the text of a comment.
type BoardText struct {
	Body string `json:"body" maxLength:"262144"`
}

// BoardChange opens or closes an item.
type BoardChange struct {
	State string `json:"state" enum:"open,closed"`
}

// BoardLabel names a label.
type BoardLabel struct {
	Label string `json:"label"`
}

// BoardLogin names a user.
type BoardLogin struct {
	Login string `json:"login"`
}

// NewBoardReview asks for a review.
type NewBoardReview struct {
	Verdict string           `json:"verdict" enum:"approve,request_changes,comment"`
	Body    string           `json:"body,omitempty" maxLength:"262144"`
	Lines   []NewBoardRemark `json:"lines,omitempty" maxItems:"1000" doc:"Comments on lines of the diff"`
	Commit  string           `json:"commit,omitempty" doc:"The head that was reviewed; it is a conflict if there is another by now"`
}

// NewBoardRemark is a comment on a line.
type NewBoardRemark struct {
	On   BoardLine `json:"on"`
	Body string    `json:"body" maxLength:"262144"`
}
