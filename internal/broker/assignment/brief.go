package assignment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/review/verdicts"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// longestDiff bounds the diff that an agent is given, in bytes. The whole of it is
// in the repository.
const longestDiff = 200 << 10

// pull reads the pull request that the task is about.
func (p *Preparer) pull(ctx context.Context, from forge.Forge, made Assignment) (*PullBrief, error) {
	brief := &PullBrief{Item: made.Item, HeadRef: headRef(made.Item)}
	if made.Task.Type == task.Review {
		diff, err := from.Diff(ctx, made.Item.Key)
		switch {
		case err == nil:
			brief.Diff, brief.CutFiles = cutDiff(diff.Patch, longestDiff)
		case task.CodeOf(err) == task.TooLarge:
			brief.CutFiles = []string{"every file: the forge gives no diff of this size"}
		default:
			return nil, fmt.Errorf("read the diff: %w", err)
		}
	}
	reviews, err := p.Verdicts.Of(ctx, from, made.Item.Key)
	if err != nil {
		return nil, err
	}
	self, err := from.Self(ctx)
	if err != nil {
		return nil, err
	}
	for _, review := range verdicts.Open(reviews, self) {
		standing, err := p.standing(ctx, made.Item, review.Author, self)
		if err != nil {
			return nil, err
		}
		summary := task.CommentEntry{Comment: review.Comment(), Access: standing.Access, Refused: standing.Refused}
		summary.Kind, summary.About = task.ReviewComment, "" // as agents know it
		brief.Summaries = append(brief.Summaries, summary)
	}
	threads, err := from.ReviewThreads(ctx, made.Item.Key)
	if err != nil {
		return nil, fmt.Errorf("read the review threads: %w", err)
	}
	if brief.Threads, err = p.openThreads(ctx, made.Item, threads, self); err != nil {
		return nil, err
	}
	brief.Issues = issuesOf(ctx, p.Snapshots, made.Item)
	return brief, nil
}

// without leaves out what the brief has: reviews that ask for changes, and comments on
// lines, of which it has those that nobody has resolved. Those on lines that are refused
// are not in the brief and stay, for the record.
func (b *PullBrief) without(comments []task.CommentEntry) []task.CommentEntry {
	return slices.DeleteFunc(comments, func(c task.CommentEntry) bool {
		asks := slices.ContainsFunc(b.Summaries, func(s task.CommentEntry) bool { return s.ID == c.ID })
		return c.Kind == task.ReviewComment && c.Refused == "" || c.Kind == task.SummaryComment && asks
	})
}

// asksForChanges reports whether somebody who may do so, or a check, asks for changes.
func (b *PullBrief) asksForChanges() bool {
	return len(b.Threads)+len(b.Checks) > 0 || slices.ContainsFunc(b.Summaries, func(s task.CommentEntry) bool { return s.Refused == "" })
}

// standing is what somebody counts for on a pull request; our own reviews do.
func (p *Preparer) standing(ctx context.Context, pull forge.Item, login, self string) (items.Standing, error) {
	if task.SameLogin(login, self) {
		return items.Standing{}, nil
	}
	return p.Steering.Of(ctx, pull, login, nil)
}

// openThreads returns the threads that nobody has resolved, without what people wrote
// there who may not steer, and without those of ours to which we have replied ourselves since
// and nobody else has: that was done.
func (p *Preparer) openThreads(ctx context.Context, pull forge.Item, threads []forge.ReviewThread, self string) ([]forge.ReviewThread, error) {
	var open []forge.ReviewThread
	for _, thread := range threads {
		if thread.Resolved {
			continue
		}
		var accepted []task.Comment
		for _, comment := range thread.Comments {
			standing, err := p.standing(ctx, pull, comment.Author, self)
			if err != nil {
				return nil, err
			}
			if standing.MaySteer() {
				accepted = append(accepted, comment)
			}
		}
		if thread.Comments = accepted; len(accepted) > 0 && !settled(accepted, self) {
			open = append(open, thread)
		}
	}
	return open, nil
}

// settled reports whether we began a thread and had the last word in it.
func settled(comments []task.Comment, self string) bool {
	last := comments[len(comments)-1]
	return len(comments) > 1 && task.SameLogin(comments[0].Author, self) && task.SameLogin(last.Author, self)
}

// issuesOf returns the issues that a pull request says that it is for. Those that
// cannot be read are left out: they are of use, and not needed. So are those that may
// not be told; see mayShow. Others than of this repository are not even read.
func issuesOf(ctx context.Context, snapshots *items.Snapshots, pull forge.Item) []forge.Item {
	var issues []forge.Item
	for _, key := range items.Mentioned(pull, items.ClosingWords) {
		if !mayShow(pull, forge.Item{Key: key}) || len(issues) == mostReferences {
			continue
		}
		key.Repository = pull.Key.Repository
		snapshot, err := snapshots.Get(ctx, key, items.ParticipantsAge)
		if err == nil && mayShow(pull, snapshot.Item) {
			snapshot.Item.Body = textfmt.Cut(snapshot.Item.Body, longestReference)
			issues = append(issues, snapshot.Item)
		}
	}
	return issues
}

// cutDiff leaves whole files out of a diff until it is not too long, the last ones
// first, and returns the names of those.
func cutDiff(patch string, limit int) (kept string, cut []string) {
	if len(patch) <= limit {
		return patch, nil
	}
	var text strings.Builder
	for _, file := range splitDiff(patch) {
		if text.Len()+len(file) > limit {
			cut = append(cut, fileOf(file))
			continue
		}
		text.WriteString(file)
	}
	return text.String(), cut
}

const fileHeader = "diff --git "

// splitDiff cuts a diff into files.
func splitDiff(patch string) []string {
	var files []string
	begin, at := 0, 0
	for line := range strings.Lines(patch) {
		if at > begin && strings.HasPrefix(line, fileHeader) {
			files = append(files, patch[begin:at])
			begin = at
		}
		at += len(line)
	}
	if at > begin {
		files = append(files, patch[begin:at])
	}
	return files
}

// fileOf is the name of the file that a part of a diff is about.
func fileOf(part string) string {
	header, _, _ := strings.Cut(strings.TrimPrefix(part, fileHeader), "\n")
	if _, name, found := strings.Cut(header, " b/"); found {
		return name
	}
	return header
}
