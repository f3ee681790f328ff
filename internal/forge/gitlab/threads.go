package gitlab

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// ReviewThreads returns the conversations on lines.
func (f *Forge) ReviewThreads(ctx context.Context, key task.Key) ([]forge.ReviewThread, error) {
	if err := checkPull(key); err != nil {
		return nil, err
	}
	options := gl.ListMergeRequestDiscussionsOptions{}
	options.PerPage = perPage
	discussions, err := pages(ctx, func(page ...gl.RequestOptionFunc) ([]*gl.Discussion, *gl.Response, error) {
		return f.client.Discussions.ListMergeRequestDiscussions(key.Repository, key.Number, &options, page...)
	})
	if err != nil {
		return nil, callError(err, "read the review threads of %s", key)
	}
	discussions = slices.DeleteFunc(discussions, func(d *gl.Discussion) bool {
		return d == nil || len(d.Notes) == 0 || !onLine(d.Notes[0]) || d.Notes[0].Internal
	})
	if len(discussions) == 0 {
		return nil, nil
	}
	request, err := f.request(ctx, key)
	if err != nil {
		return nil, err
	}
	var threads []forge.ReviewThread
	for _, discussion := range discussions {
		threads = append(threads, threadOf(discussion, request.DiffRefs.HeadSha))
	}
	slices.SortStableFunc(threads, func(a, b forge.ReviewThread) int { return oldestFirst(a.Comments[0], b.Comments[0]) })
	return threads, nil
}

// threadOf makes a thread of a discussion. GitLab moves the position of a note
// along with the line as the head moves, until the line is gone.
func threadOf(discussion *gl.Discussion, head string) forge.ReviewThread {
	thread := forge.ReviewThread{ID: discussion.ID, Resolved: true}
	resolvable := false
	for _, note := range discussion.Notes {
		if note.System || note.Internal {
			continue
		}
		comment := commentOf(note)
		comment.Kind = task.ReviewComment
		thread.Comments = append(thread.Comments, comment)
		resolvable = resolvable || note.Resolvable
		thread.Resolved = thread.Resolved && (!note.Resolvable || note.Resolved)
	}
	thread.Resolved = thread.Resolved && resolvable
	position := discussion.Notes[0].Position
	if position == nil {
		thread.Outdated = true
		return thread
	}
	thread.Outdated = head != "" && position.HeadSHA != head
	thread.Anchor = forge.Anchor{Path: cmp.Or(position.NewPath, position.OldPath), Side: forge.NewSide, Line: int(position.NewLine)}
	if position.NewLine == 0 && position.OldLine != 0 {
		thread.Anchor.Side, thread.Anchor.Line = forge.OldSide, int(position.OldLine)
	}
	if thread.Outdated {
		thread.Anchor.Line = 0
	}
	return thread
}

// Reply writes a comment into a review thread.
func (f *Forge) Reply(ctx context.Context, key task.Key, thread string, post forge.Post) (task.Comment, error) {
	if err := checkPull(key); err != nil {
		return task.Comment{}, err
	}
	if !discussion.MatchString(thread) {
		return task.Comment{}, task.Errorf(task.NotFound, "GitLab has no thread with the id %q", thread)
	}
	if post.Repeat {
		comment, found, err := f.findReply(ctx, key, thread, post.Marker)
		if found || err != nil {
			return comment, err
		}
	}
	body := post.Body()
	options := gl.AddMergeRequestDiscussionNoteOptions{Body: &body}
	note, _, err := f.client.Discussions.AddMergeRequestDiscussionNote(key.Repository, key.Number, thread, &options, in(ctx))
	comment, err := written(note, err, "reply on %s", key)
	comment.Kind = task.ReviewComment
	return comment, err
}

// ResolveThread marks a review thread as resolved.
func (f *Forge) ResolveThread(ctx context.Context, key task.Key, thread string) error {
	if err := checkPull(key); err != nil {
		return err
	}
	if !discussion.MatchString(thread) {
		return task.Errorf(task.NotFound, "GitLab has no thread with the id %q", thread)
	}
	yes := true
	options := gl.ResolveMergeRequestDiscussionOptions{Resolved: &yes}
	_, _, err := f.client.Discussions.ResolveMergeRequestDiscussion(key.Repository, key.Number, thread, &options, in(ctx))
	if err != nil {
		return callError(err, "resolve a review thread of %s", key)
	}
	return nil
}

func (f *Forge) findReply(ctx context.Context, key task.Key, thread string, marker forge.Marker) (task.Comment, bool, error) {
	self, err := f.Self(ctx)
	if err != nil {
		return task.Comment{}, false, err
	}
	found, _, err := f.client.Discussions.GetMergeRequestDiscussion(key.Repository, key.Number, thread, in(ctx))
	if err == nil && (found == nil || len(found.Notes) == 0) {
		err = errNonsense
	}
	if err != nil {
		return task.Comment{}, false, callError(err, "read a review thread of %s", key)
	}
	comment, is := forge.FindMarked(threadOf(found, "").Comments, self, marker)
	return comment, is, nil
}

// positions gives each comment its position as GitLab wants it: both paths, and
// for a line that did not change both numbers.
func (f *Forge) positions(ctx context.Context, key task.Key, request *gl.MergeRequest, comments []forge.LineComment) ([]*gl.PositionOptions, error) {
	if len(comments) == 0 {
		return nil, nil
	}
	diff, err := f.diff(ctx, key, request)
	if err != nil {
		return nil, err
	}
	files, _, err := gitdiff.Parse(strings.NewReader(diff.Patch))
	if err != nil {
		return nil, task.Wrap(task.Unavailable, err, "the diff of "+key.String()+" cannot be read")
	}
	refs := request.DiffRefs
	var positions []*gl.PositionOptions
	for _, comment := range comments {
		position, found := positionIn(files, comment.Anchor)
		if !found {
			return nil, task.Errorf(task.Invalid, "the diff of %s does not show %s", key, comment.Anchor)
		}
		text := "text"
		position.PositionType = &text
		position.BaseSHA, position.StartSHA, position.HeadSHA = &refs.BaseSha, &refs.StartSha, &refs.HeadSha
		positions = append(positions, position)
	}
	return positions, nil
}

func positionIn(files []*gitdiff.File, anchor forge.Anchor) (*gl.PositionOptions, bool) {
	for _, file := range files {
		if cmp.Or(file.NewName, file.OldName) != anchor.Path {
			continue
		}
		for _, fragment := range file.TextFragments {
			if position, found := lineIn(fragment, anchor); found {
				before, after := cmp.Or(file.OldName, file.NewName), cmp.Or(file.NewName, file.OldName)
				position.OldPath, position.NewPath = &before, &after
				return position, true
			}
		}
	}
	return nil, false
}

func lineIn(fragment *gitdiff.TextFragment, anchor forge.Anchor) (*gl.PositionOptions, bool) {
	before, after := fragment.OldPosition, fragment.NewPosition
	for _, line := range fragment.Lines {
		isOld, isNew := line.Op != gitdiff.OpAdd, line.Op != gitdiff.OpDelete
		if isNew && anchor.Side != forge.OldSide && after == int64(anchor.Line) ||
			isOld && anchor.Side == forge.OldSide && before == int64(anchor.Line) {
			position := new(gl.PositionOptions)
			if isOld {
				position.OldLine = &before
			}
			if isNew {
				position.NewLine = &after
			}
			return position, true
		}
		if isOld {
			before++
		}
		if isNew {
			after++
		}
	}
	return nil, false
}
