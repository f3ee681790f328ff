package wire

import (
	"encoding/json"
	"time"

	"github.com/toryo-dev/toryo/internal/receipt"
	"github.com/toryo-dev/toryo/internal/task"
)

// What an agent and the server say to each other. A request for a task is made
// with the agent's own token; everything about a task that it holds is said with
// the token of the lease, and is refused with lease_lost when that is over.

// TaskRequest asks for a task. An agent has no role to name: it takes on the
// one that the task asks for.
type TaskRequest struct {
	AgentID string `json:"agent_id" doc:"The agent's own name for itself" maxLength:"200" minLength:"1"`
	Process string `json:"process,omitempty" doc:"A secret name of the agent's process, which no other one has; see restarted" maxLength:"100"`
}

// Assignment is a task in the hands of an agent.
type Assignment struct {
	TaskID       string              `json:"task_id"`
	Generation   int64               `json:"generation" doc:"Counts the runs of the task; every write for it names this one"`
	TaskType     string              `json:"task_type" enum:"development,review"`
	Cause        string              `json:"cause,omitempty" doc:"What the task was assigned for, such as base_conflict"`
	Occasion     string              `json:"occasion,omitempty" doc:"The one thing that it was assigned for, such as the commits that do not merge"`
	RequiredRole string              `json:"required_role" doc:"The role that the agent becomes for this task"`
	Forge        string              `json:"forge" enum:"github,gitlab,gitea,board"`
	Repository   string              `json:"repository"`
	Kind         string              `json:"kind" doc:"What the number is of" enum:"issue,pull"`
	Number       int64               `json:"number"`
	URL          string              `json:"url"`
	Title        string              `json:"title"`
	Body         string              `json:"body"`
	Author       string              `json:"author"`
	AuthorAccess string              `json:"author_access" doc:"What the author may do in the repository" enum:"none,read,write,admin"`
	Labels       []string            `json:"labels"`
	Comments     []task.CommentEntry `json:"comments" doc:"Comments that were there when the task was first handed out, oldest first"`
	Prompt       string              `json:"prompt" doc:"The task in words, for an executor that takes a prompt"`
	Branch       string              `json:"branch" doc:"The branch that the work goes to"`
	Base         string              `json:"base" doc:"The branch that the work starts from"`
	BaseCommit   string              `json:"base_commit,omitempty" doc:"The commit that the base has for this run"`
	StartCommit  string              `json:"start_commit,omitempty" doc:"The commit that is to be checked out: the head of the pull request, what the branch has already, or that of the base"`
	CloneURL     string              `json:"clone_url" doc:"Where git finds the repository; the password is the token of the lease"`
	Lease        Lease               `json:"lease"`
	Approval     task.PlanApproval   `json:"plan_approval,omitzero" doc:"Whether people have to approve the plan"`
	PullRequest  *PullRequest        `json:"pull_request,omitempty" doc:"The pull request that is to be reviewed or fixed"`
	Resume       *Resume             `json:"resume,omitempty" doc:"Set when an earlier run goes on"`
	Earlier      string              `json:"earlier,omitempty" doc:"The last summary of an earlier run on the same item"`
	ReviewNotes  string              `json:"review_notes,omitempty" doc:"Notes from past reviews of the repository, as a model is shown them"`
}

// Lease is an agent's hold on a task.
type Lease struct {
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expires_at"`
	// Every is how often the agent has to be heard of. It counts on the agent's
	// own clock, which may differ from the server's.
	Every int64 `json:"renew_every_ms" doc:"How often to renew the lease, in milliseconds"`
}

// PullRequest is the pull request that a task is about.
type PullRequest struct {
	Number    int64               `json:"number"`
	URL       string              `json:"url"`
	Title     string              `json:"title"`
	Body      string              `json:"body"`
	Author    string              `json:"author"`
	Head      string              `json:"head" doc:"The branch with the changes"`
	HeadRef   string              `json:"head_ref" doc:"Where it is found in the repository that is cloned"`
	Base      string              `json:"base"`
	Commit    string              `json:"commit" doc:"The head commit"`
	Diff      string              `json:"diff,omitempty" doc:"Cut by file when it is large; cut_files names what is missing"`
	CutFiles  []string            `json:"cut_files,omitempty"`
	Threads   []ReviewThread      `json:"threads,omitempty" doc:"Open review threads that ask for changes"`
	Summaries []task.CommentEntry `json:"summaries,omitempty" doc:"What the reviews that ask for changes say in all"`
	Issues    []IssueText         `json:"issues,omitempty" doc:"The issues that it is for"`
	Checks    []FailedCheck       `json:"checks,omitempty" doc:"Checks of the head commit that failed and are to be fixed"`
}

// FailedCheck is a check of a commit that failed.
type FailedCheck struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty" doc:"One line of the check's own"`
	URL         string `json:"url,omitempty" doc:"Where people see it"`
	Log         string `json:"log,omitempty" doc:"The end of what it printed"`
}

// IssueText is an issue that a pull request is for.
type IssueText struct {
	Number int64  `json:"number"`
	Title  string `json:"title"`
	Body   string `json:"body"`
}

// ReviewThread is a conversation on a line of a pull request.
type ReviewThread struct {
	ID       string              `json:"id"`
	Path     string              `json:"path"`
	Line     int                 `json:"line"`
	Old      bool                `json:"old,omitempty" doc:"The line is one of the old side"`
	Comments []task.CommentEntry `json:"comments"`
}

// Resume says where an earlier run of the task was.
type Resume struct {
	Generation int64  `json:"generation" doc:"The generation of the run that goes on"`
	Reason     string `json:"reason" doc:"Why it was interrupted"`
	Phase      string `json:"phase"`
	WIPRef     string `json:"wip_ref" doc:"Where the work in progress is, in the repository that is cloned; empty if there is none"`
	WIPCommit  string `json:"wip_commit,omitempty" doc:"The commit that it has there"`
	Events     int64  `json:"events" doc:"Position of the last entry of the journal"`
	Comments   int64  `json:"comments" doc:"Position of the last comment that the run has taken up"`
}

// Heartbeat is the answer to a renewal.
type Heartbeat struct {
	ExpiresAt time.Time `json:"expires_at"`
}

// Entry is an entry of the journal on its way to the server. An entry that is
// sent twice is stored once.
type Entry struct {
	Sequence int64           `json:"sequence" minimum:"1"`
	Kind     string          `json:"kind"`
	At       time.Time       `json:"at"`
	Data     json.RawMessage `json:"data,omitempty"`
}

// Report brings entries of the journal to the server, in order.
type Report struct {
	Entries []Entry `json:"entries"`
}

// Reported acknowledges entries.
type Reported struct {
	Acknowledged int64 `json:"acknowledged" doc:"Every entry up to this sequence is stored"`
}

// Signals is what a run has to know. Stop beats pause beats comments.
type Signals struct {
	Stop     *Halt               `json:"stop,omitempty"`
	Pause    *Halt               `json:"pause,omitempty"`
	Comments []task.CommentEntry `json:"comments,omitempty" doc:"Comments after the position that was asked for, in order"`
}

// Halt asks a run to end.
type Halt struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since" doc:"When it was asked for"`
}

// Progress is the text of the one comment that shows how a run is getting on.
type Progress struct {
	Text string `json:"text" maxLength:"200000"`
}

// NewComment is a comment of its own. The same name is the same comment: it is written
// once.
type NewComment struct {
	Name string `json:"name" minLength:"1" maxLength:"200"`
	Text string `json:"text" maxLength:"200000"`
	// Thread is the review thread to answer in; empty for the item's conversation.
	Thread string `json:"thread,omitempty"`
	// Resolved says that the reply deals with the thread, which is then marked as resolved.
	Resolved bool `json:"resolved,omitempty"`
}

// OpenPull asks for the branch to be published and a pull request to be opened
// for it, or for the one that is open to be brought up to date.
type OpenPull struct {
	Branch string `json:"branch"`
	Commit string `json:"commit" doc:"That the branch has in the task's namespace"`
	Base   string `json:"base"`
	Title  string `json:"title"`
	Body   string `json:"body" maxLength:"200000"`
	Draft  bool   `json:"draft,omitempty"`
	Again  bool   `json:"again,omitempty" doc:"The model was told of what the server found in this work"`
	// Verdict is signed by the server, with what it knows itself.
	Verdict *receipt.Verdict `json:"verdict,omitempty" doc:"What verification found, for the receipt of the commit"`
}

// Reference is an item that the text of the task's own item names.
type Reference struct {
	Kind   string `json:"kind" enum:"issue,pull"`
	Number int64  `json:"number"`
	URL    string `json:"url"`
	State  string `json:"state" enum:"open,closed,merged"`
	Author string `json:"author"`
	Title  string `json:"title"`
	Body   string `json:"body" doc:"Cut when it is long"`
}

// References are the items that the text of the task's own item names, in the
// same repository. Which they are is not for the run to say.
type References struct {
	Items []Reference `json:"items"`
}

// Image is an image in the text of an item or in a comment.
type Image struct {
	Link   string `json:"link" doc:"As it is written in the text"`
	Hash   string `json:"hash" doc:"SHA-256 of the data, in hexadecimal"`
	Type   string `json:"type" enum:"image/png,image/jpeg,image/gif,image/webp"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Data   []byte `json:"data"`
}

// Images are the images in the text of the task's own item and its comments, of people who may
// steer the work on it. They are few and bounded.
type Images struct {
	Images []Image `json:"images"`
}

// Pulled is the pull request of a run.
type Pulled struct {
	Number int64  `json:"number"`
	URL    string `json:"url"`
	Opened bool   `json:"opened" doc:"False if it was there already"`
	Commit string `json:"commit,omitempty" doc:"That was published: it is the server's, and not the one that was pushed"`
	// Withheld work is shown to the model once, with the findings, and offered again.
	Withheld bool           `json:"withheld,omitempty" doc:"Nothing was published; the model is to be told of the findings, once"`
	Findings []task.Finding `json:"findings,omitempty" doc:"What nobody asked for; work that was published with it is a draft"`
	Moved    string         `json:"moved,omitempty" doc:"Nothing was published: others have pushed this commit to the branch, and the work has to be put on top of it. The task's branch has it"`
}

// Result ends a run.
type Result struct {
	Outcome task.Outcome `json:"outcome" enum:"done,failed,paused,returned,stopped" doc:"paused and stopped answer a signal; returned hands the task back"`
	Reason  string       `json:"reason,omitempty"`
	// Comment is what people are told at the end, in the language of the item.
	Comment string `json:"comment,omitempty" maxLength:"200000"`
	// Detail is what went wrong or what is asked, without the words around it: what the forge,
	// the tool or the program said. Hint is what can be done about it.
	Detail string `json:"detail,omitempty" maxLength:"200000"`
	Hint   string `json:"hint,omitempty" maxLength:"200000"`
	// Summary is for a later run on the same item.
	Summary string `json:"summary,omitempty" maxLength:"200000"`
	// Progress is the progress comment as it is to stay; empty leaves it as it is.
	Progress string `json:"progress,omitempty" maxLength:"200000"`
	// Kept is the commit of the work in progress that was pushed last.
	Kept string `json:"kept,omitempty"`
	// CutAfter is how long after the signal arrived the work was cut.
	CutAfter int64         `json:"cut_after_ms,omitempty"`
	Pull     *Pulled       `json:"pull,omitempty"`
	Review   *ReviewResult `json:"review,omitempty"`
}

// Ended is what has become of the task at the end of a run.
type Ended struct {
	State  string `json:"state" enum:"queued,running,paused,stopped,done,failed"`
	Reason string `json:"reason"`
}

// RunsAsked names runs whose files an agent has kept, to ask what became of them.
type RunsAsked struct {
	Runs []RunRef `json:"runs" maxItems:"100"`
	// Unmoved are runs of the agent whose files it cannot put where they belong.
	Unmoved []RunUnmoved `json:"unmoved,omitempty" maxItems:"100"`
}

// RunUnmoved is a run whose context files cannot be moved, which people are to know.
type RunUnmoved struct {
	RunRef
	Folder string `json:"folder" enum:"paused,completed" doc:"Where they belong"`
	Cause  string `json:"cause" maxLength:"2000" doc:"Why they cannot be moved"`
}

// RunRef names a run by its task and its last generation.
type RunRef struct {
	TaskID     string `json:"task_id"`
	Generation int64  `json:"generation"`
}

// RunsOver are those of the runs that will not go on.
type RunsOver struct {
	Over []RunOver `json:"over"`
}

// RunOver is a run that will not go on.
type RunOver struct {
	RunRef
	State  string `json:"state" enum:"stopped,done,failed" doc:"What became of its task"`
	Reason string `json:"reason"`
}

// ReviewResult is what a review task comes to.
type ReviewResult struct {
	Commit string `json:"commit" doc:"The head commit that was reviewed"`
	// Question, Answer and Judgement make the review that people can talk with:
	// the issue, the diff in sections marked $$[N], and the judgement as JSON.
	Question  string          `json:"question" maxLength:"4194304"`
	Answer    string          `json:"answer" maxLength:"4194304"`
	Judgement json.RawMessage `json:"judgement"`
	// Verdict, Text and Comments are what the forge is given.
	Verdict  string        `json:"verdict" enum:"approve,comment,request_changes"`
	Text     string        `json:"text" maxLength:"262144"`
	Comments []LineComment `json:"comments,omitempty"`
}

// LineComment is a comment on a line in a review.
type LineComment struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Old  bool   `json:"old,omitempty"`
	Text string `json:"text" maxLength:"262144"`
}

// Spend asks for leave to make a call to a model.
type Spend struct {
	Tokens int64 `json:"tokens" minimum:"0" doc:"The most that the call can use"`
	Money  int64 `json:"money" minimum:"0" doc:"In millionths of the currency"`
}

// Reservation is leave to make a call.
type Reservation struct {
	ID string `json:"id"`
}

// Settlement says what a call used.
type Settlement struct {
	Reservation string `json:"reservation"`
	Tokens      int64  `json:"tokens" minimum:"0"`
	Money       int64  `json:"money" minimum:"0"`
}
