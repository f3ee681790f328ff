package forge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/toryo-dev/toryo/internal/task"
)

// Verdict is the decision of a review.
type Verdict string

// The verdicts.
const (
	Approve        Verdict = "approve"
	RequestChanges Verdict = "request_changes"
	Remark         Verdict = "comment"
)

// Review is a submitted review of a pull request. Its comments on lines are in
// the review threads.
type Review struct {
	ID        string
	Author    string
	Verdict   Verdict
	Body      string
	Commit    string // the head that was reviewed; empty if the forge does not say
	Dismissed bool   // withdrawn, or no longer valid after a push
	At        time.Time
}

// Comment is the text of the review as a comment.
func (r Review) Comment() task.Comment {
	return task.Comment{
		ID: r.ID, Kind: task.SummaryComment, Author: r.Author, Body: r.Body, CreatedAt: r.At, UpdatedAt: r.At, About: string(r.Verdict),
	}
}

// Side says on which side of a diff a line is.
type Side string

// The sides: the file as it is in the head, or as it was before.
const (
	NewSide Side = "new"
	OldSide Side = "old"
)

// Anchor is a line of a diff that can be commented on. Lines count from 1.
// For a line of OldSide, Path is still the file's path in the head, unless the
// file was deleted.
type Anchor struct {
	Path string
	Side Side
	Line int
}

// ReviewThread is a conversation on a line of a diff.
type ReviewThread struct {
	ID string
	// Anchor is where the thread stands in the diff as it is now. Line is 0 when
	// the line is no longer there or the thread is about the whole file.
	Anchor   Anchor
	Resolved bool
	Outdated bool
	Comments []task.Comment // one at least, of kind [task.ReviewComment]
}

// ReviewComments returns the comments of all threads in one list, oldest first. Each
// says on which line it is.
func ReviewComments(threads []ReviewThread) []task.Comment {
	var all []task.Comment
	for _, thread := range threads {
		for _, comment := range thread.Comments {
			comment.About = thread.Anchor.String()
			all = append(all, comment)
		}
	}
	slices.SortStableFunc(all, func(a, b task.Comment) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return all
}

// ReviewTexts returns the texts of reviews as comments, in the same order. A review
// without a text is none, and a request for changes that was dismissed is withdrawn.
func ReviewTexts(reviews []Review) []task.Comment {
	var all []task.Comment
	for _, review := range reviews {
		if strings.TrimSpace(review.Body) == "" || review.Dismissed && review.Verdict == RequestChanges {
			continue
		}
		all = append(all, review.Comment())
	}
	return all
}

// LineComment is a comment on a line, to be submitted with a review.
type LineComment struct {
	Anchor Anchor
	Text   Text
}

// ReviewPost is a review to be submitted. Marker and Repeat are as in [Post]: the
// marker is hidden in the review's own text.
type ReviewPost struct {
	Verdict  Verdict
	Text     Text
	Comments []LineComment
	Commit   string // the head that was reviewed; Conflict if the forge tells that it is no longer the head
	Marker   Marker
	Repeat   bool
}

// Body is the review's own text as the forge gets it.
func (p ReviewPost) Body() string { return p.Text.With(p.Marker) }

// Diff is what a pull request changes.
type Diff struct {
	Base  string // the commit that Patch starts from; empty if the forge does not say
	Head  string
	Patch string // as git diff writes it
}

// Anchors returns every line that can be commented on: those that the patch
// shows. It fails with Invalid if the patch cannot be read.
func (d Diff) Anchors() (map[Anchor]bool, error) {
	files, _, err := gitdiff.Parse(strings.NewReader(d.Patch))
	if err != nil {
		return nil, task.Wrap(task.Invalid, err, "the diff cannot be read")
	}
	anchors := map[Anchor]bool{}
	for _, file := range files {
		path := cmp.Or(file.NewName, file.OldName)
		for _, fragment := range file.TextFragments {
			addAnchors(anchors, path, fragment)
		}
	}
	return anchors, nil
}

func addAnchors(anchors map[Anchor]bool, path string, fragment *gitdiff.TextFragment) {
	before, after := int(fragment.OldPosition), int(fragment.NewPosition)
	for _, line := range fragment.Lines {
		if line.Op != gitdiff.OpDelete {
			anchors[Anchor{path, NewSide, after}] = true
			after++
		}
		if line.Op != gitdiff.OpAdd {
			anchors[Anchor{path, OldSide, before}] = true
			before++
		}
	}
}

// String is the anchor as people write it: "path:12", with "(old)" behind it for
// the old side. Without a line it is the path.
func (a Anchor) String() string {
	if a.Line == 0 {
		return a.Path
	}
	text := fmt.Sprintf("%s:%d", a.Path, a.Line)
	if a.Side == OldSide {
		text += " (old)"
	}
	return text
}

// OpenRequests returns the reviews that ask for changes and still stand: of each
// reviewer the last one that decided anything, oldest first.
func OpenRequests(reviews []Review) []Review {
	last := map[string]int{}
	for i, review := range reviews {
		author := task.FoldLogin(review.Author)
		before, known := last[author]
		if review.Verdict != Remark && (!known || !review.At.Before(reviews[before].At)) {
			last[author] = i
		}
	}
	var open []Review
	for _, i := range slices.Sorted(maps.Values(last)) {
		if review := reviews[i]; review.Verdict == RequestChanges && !review.Dismissed {
			open = append(open, review)
		}
	}
	slices.SortStableFunc(open, func(a, b Review) int { return a.At.Compare(b.At) })
	return open
}
