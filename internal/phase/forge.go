package phase

import (
	"context"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/receipt"
	"github.com/toryo-dev/toryo/internal/task"
)

// Work is a task as its run sees it.
type Work struct {
	Task       task.ID
	Generation int64
	Item       task.Key // zero for a task that is on no forge
	Type       task.Type
	Role       task.Role
	Cause      task.Reason // what the task was assigned for; empty if it is not known
	Occasion   string      // the one thing that it was assigned for, such as commits that do not merge
	Folder     string      // of a task that is on no forge
	Project    string      // names the repository of such a task, for what is kept of its environment; the folder if it is empty
	URL        string
	Title      string
	Body       string
	Author     Person
	Labels     []string
	Comments   []task.CommentEntry // that were there at the start, oldest first
	Branch     string              // that the work goes to
	Base       string              // that it starts from
	// Approval says whether people have to approve the plan, and what they have said.
	Approval task.PlanApproval
	Pull     *Pull  // that the work is about; nil for a plain issue
	Earlier  string // the last summary of an earlier run on the item
	Notes    string // from past reviews of the repository, as the model is shown them
	// Past is the journal of the run that goes on, oldest first; empty for a new
	// one.
	Past []task.Event
}

// Commented reports whether nothing but a comment is what a fix-up is for; see [task.OnlyComment].
func (w Work) Commented() bool {
	return w.Pull != nil && task.OnlyComment(w.Cause, w.Occasion, w.Pull.Summaries)
}

// CommentThread is the review thread of the comment that a fix-up was assigned for, if it is in
// one.
func (w Work) CommentThread() (id string, found bool) {
	comment, _ := task.CommentOf(w.Occasion)
	if w.Pull == nil || comment == "" {
		return "", false
	}
	for _, thread := range w.Pull.Threads {
		if slices.ContainsFunc(thread.Comments, func(c task.CommentEntry) bool { return c.ID == comment }) {
			return thread.ID, true
		}
	}
	return "", false
}

// ItemName is what the item of the work is called, or nothing if it has none.
func (w Work) ItemName() string {
	if w.Item == (task.Key{}) {
		return ""
	}
	return w.Item.String()
}

// Person is who wrote something, and what the forge lets them do.
type Person struct {
	Login  string
	Access string // none, read, write, admin; empty if it is not known
}

// Pull is a pull request that a run works on.
type Pull struct {
	Number    int64
	URL       string
	Title     string
	Body      string
	Author    string
	Head      string
	Base      string
	Commit    string
	Threads   []Thread            // that ask for changes
	Summaries []task.CommentEntry // what the reviews say in all
	Checks    []FailedCheck       // of the commit, that are to be fixed
}

// FailedCheck is a check of a commit that failed. All of it is untrusted.
type FailedCheck struct {
	Name        string
	Description string
	URL         string
	Log         string // the end of what it printed; empty if it is not known
}

// ThreadReply answers a review thread.
type ThreadReply struct {
	Thread string `json:"thread"`
	Text   string `json:"text"`
	// Resolved says that what the thread asks for was done, or that the text answers it, so
	// that the thread can be marked as resolved.
	Resolved bool `json:"resolved,omitempty"`
}

// Thread is a conversation on a line of a pull request.
type Thread struct {
	ID       string
	Path     string
	Line     int
	Comments []task.CommentEntry
}

// Forge is the forge as a run sees it: it reads comments of people, and writes comments and
// pull requests. A call may be repeated after a crash: what has the same name is
// done once.
//
// Stop and pause do not come through it. They end the context of the run, with a
// [Halt] as its cause, in the middle of whatever is going on.
type Forge interface {
	// Comments returns the comments after the position, in the order of their positions,
	// as far as this machine has received them. It makes no request, does not wait and
	// changes nothing. The position of the last one is that of the last change that was
	// received, also if that change took back what nobody has taken up.
	Comments(ctx context.Context, after int64) ([]task.CommentEntry, error)
	// LatestComments is Comments after what the server has by now was received.
	LatestComments(ctx context.Context, after int64) ([]task.CommentEntry, error)
	// References returns the other items that the text of the task's own item
	// names, as far as they can be read. Whoever keeps the items decides which
	// those are.
	References(ctx context.Context) ([]Reference, error)
	// Images returns the images in the text of the task's own item and its comments, of people
	// who may steer the work on it, as far as they can be read.
	Images(ctx context.Context) ([]Image, error)
	// Progress brings the one comment that shows how the run is getting on up to
	// date. It does not wait for the forge.
	Progress(ctx context.Context, text string) error
	// AddComment writes a comment, once for each name.
	AddComment(ctx context.Context, name, text string) error
	// Reply answers in a review thread, once for each name.
	Reply(ctx context.Context, name string, reply ThreadReply) error
	// OpenPull publishes the branch and opens a pull request, or brings the one
	// that is there up to date, and waits until that has happened. Unsafe means that
	// the work has something in it that is never published.
	OpenPull(ctx context.Context, open OpenPull) (Pulled, error)
}

// Reference is another item that the request names.
type Reference struct {
	Kind   task.ItemKind
	Number int64
	State  string
	Author string
	Title  string
	Body   string
}

// OpenPull is a pull request that is to be there.
type OpenPull struct {
	Branch string
	Commit string
	Base   string
	Title  string
	Body   string
	Draft  bool
	Again  bool // the model was told of what was found in this work
	// Verdict is what verification found, for the receipt of the commit; nil if nothing
	// was verified.
	Verdict *receipt.Verdict
}

// Pulled is a pull request that is there.
type Pulled struct {
	Number int64
	URL    string
	Opened bool   // false if it was there already
	Commit string // that was published, which is not the one of the request
	// Withheld says that nothing was published because of the findings. The model is
	// to be told of them once, and the work offered again. Otherwise it was published
	// as a draft that lists them.
	Withheld bool
	Findings []task.Finding
	// Moved is the commit of the branch that others have pushed and that is not in the
	// work. Nothing was published: the work has to be put on top of it.
	Moved string
}

// Halt is the cause of the end of a run's context when a signal ended it.
type Halt struct { //nolint:errname // it is a signal before it is an error
	Signal task.Signal // stop or pause
	Reason task.Reason
	Since  time.Time // when it arrived here
}

// Error says what happened.
func (h *Halt) Error() string {
	return "the run was asked to " + string(h.Signal) + ": " + messages.Reason(task.English, h.Reason)
}

// Repository is the project that is worked on. Git's own files are kept where the sandbox
// cannot reach them, so that nothing inside can make git run a program on the host; the
// workspace is only the files.
type Repository interface { //nolint:interfacebloat // all that a run does to its working copy
	Worktree
	History
	// Save commits everything in the workspace as work in progress and pushes it
	// to the task's namespace, where it outlasts this machine. Without changes
	// since the last time it returns the last commit, and without any at all none.
	Save(ctx context.Context, message string) (commit string, err error)
	// Diff is everything that differs from the base, as a unified diff, with the
	// names of the files: in a commit that Save has made, or in the workspace if
	// saved is empty.
	Diff(ctx context.Context, saved string) (Diff, error)
	// Commit makes the branch: the work in one commit with the message, on top of
	// the base or of what the branch had, and pushes it to the task's namespace.
	// Changed is false, and nothing is pushed, if nothing differs.
	// The files are those of a commit that Save has made, whatever the workspace
	// has now, or those of the workspace if saved is empty.
	Commit(ctx context.Context, message, saved string) (commit string, changed bool, err error)
	// Base returns a file as the base branch has it, or NotFound.
	Base(ctx context.Context, path string) ([]byte, error)
	// BaseFiles lists the files of the base branch.
	BaseFiles(ctx context.Context) ([]string, error)
	// Merge brings what the base has got since into the work. It returns the
	// paths in conflict, which are then marked in the files, if there are any.
	Merge(ctx context.Context) (conflicts []string, err error)
	// Tips are the commits of the base and of the branch, as far as is known without asking.
	Tips() (base, branch string)
	// Conflicts names the files in which Merge would find conflicts, as far as is known
	// without asking for what the base has by now. It changes nothing.
	Conflicts(ctx context.Context) ([]string, error)
	// TakeBranch puts the work on top of what others have pushed to the branch since: the
	// next commit has that below it. It returns the paths in conflict as Merge does.
	TakeBranch(ctx context.Context) (conflicts []string, err error)
}

// Worktree is the workspace, and what of it is no part of the work.
type Worktree interface {
	// Workspace is the folder with the files, on this machine.
	Workspace() string
	// Preserve does something that may change files, and then puts back those that
	// were there before. Files that were made stay.
	Preserve(ctx context.Context, do func(context.Context) error) (Preserved, error)
	// Exclude keeps paths of the workspace out of every later Save, Diff and
	// Commit: what set-up made there, such as installed packages. They are paths
	// relative to the workspace, and folders mean all that is in them. What the
	// base has is not excluded. It may be called again with other paths, which
	// are then excluded too.
	Exclude(ctx context.Context, paths []string) error
	// ExcludeUnchanged keeps files out as Exclude does, for as long as they have the
	// content that is named beside them, as [Preserved] has it.
	ExcludeUnchanged(ctx context.Context, files map[string]string) error
	// Fits is TooLarge, with what to do about it, if Commit would refuse a changed
	// file for its size. Files that the base has are as large as they are.
	Fits(ctx context.Context) error
	// Remarks says what was left out or left alone, for people.
	Remarks() []string
}

// History has the commits of the project and of the work.
type History interface {
	// Below is the commit that the branch's next one is on top of: the base, or what
	// the branch had.
	Below() string
	// Before is the commit that the work is compared with: what the base has, as far as
	// it is in the work. If the branch is somebody else's, it is what the branch had
	// when the run began, with that of the base.
	Before(ctx context.Context, others bool) (string, error)
	// Export writes the files of a commit, and nothing else, to a folder of their own.
	Export(ctx context.Context, commit string) (Export, error)
	// Changed reports whether a commit that Save has made has other files than the
	// branch had when the run began, with what the base has got since. None has not.
	Changed(ctx context.Context, saved string) (bool, error)
	// Lost names what others have done and a commit that Save has made has not, or the
	// workspace if saved is empty.
	Lost(ctx context.Context, saved string) (Lost, error)
	// Files lists the files of a commit.
	Files(ctx context.Context, commit string) ([]string, error)
	// Changes names the files that differ between two commits.
	Changes(ctx context.Context, from, to string) ([]Change, error)
	// File returns a regular file of a commit, or NotFound, or TooLarge.
	File(ctx context.Context, commit, name string) ([]byte, error)
	// Mixed makes a commit of the files of one, of which those named are as another
	// one has them, or not there if that has none.
	Mixed(ctx context.Context, on, from string, names []string) (commit string, err error)
	// Replaced makes a commit of the files of one, of which some have other contents.
	Replaced(ctx context.Context, on string, contents map[string][]byte) (commit string, err error)
}

// Lost is work of others that is not in a commit.
type Lost struct {
	// Merge are files without conflicts that are not what the branch had when the run began
	// with the base merged into it: they were changed besides. It is empty without a merge.
	Merge []string
	// Dropped are those of them that are gone, or just as the base has them, so that what the
	// pull request did there is lost. Merge does not name these. Of the files with conflicts
	// it names those that are just as the base has them, or gone as there.
	Dropped []string
	// Pushed are the files that lack lines, or all, of what others have pushed to the branch
	// while the run went on. Of the files with conflicts it names those that are gone, or just
	// as the work had them.
	Pushed []string
	// Tests are those of files with conflicts that a side had and the files do not have any
	// more, each with its file. They are found by how they are written.
	Tests []string
}

// Export is a folder with the files of a commit.
type Export interface {
	Dir() string
	// Restore puts the files of the commit back as they were, and names those that
	// were not. Other files stay.
	Restore(ctx context.Context) ([]string, error)
	Remove() error
}

// Preserved says what was done to the files of a workspace.
type Preserved struct {
	Restored []string          // files that were changed or removed, and put back
	Made     map[string]string // new files that git does not ignore, with the hash of their content
}

// Change is a file that differs between two commits.
type Change struct {
	Name           string
	Added, Removed bool
}

// Diff is a change.
type Diff struct {
	Files []string
	Text  string
	Cut   bool // the text is not all of it
}
