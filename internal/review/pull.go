package review

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/review/verdicts"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Reviewed keeps the review of a pull request and has it submitted to the forge,
// both or neither. A head commit is reviewed once: the second time it returns the
// review that there is, and nothing is submitted.
func (s *Service) Reviewed(ctx context.Context, pull task.Key, report judge.Report) (store.Review, error) {
	record := store.Review{
		CustomQuestionText: report.Question, AnswerText: report.Answer, Judgement: report.Judgement,
		Pull: pull, HeadCommit: report.Commit, Verdict: report.Verdict, CreatedAt: s.Now(),
	}
	submit, err := submission(pull, report)
	if err != nil {
		return store.Review{}, err
	}
	if err := checkPullReview(record); err != nil {
		return store.Review{}, err
	}
	stored, err := s.Store.AddReview(ctx, record, submit)
	if task.CodeOf(err) == task.Conflict {
		return s.reviewOfCommit(ctx, pull, report.Commit)
	}
	if err != nil {
		return store.Review{}, err
	}
	s.wake()
	return stored, nil
}

func checkPullReview(r store.Review) error {
	if err := r.Pull.Validate(); err != nil {
		return err
	}
	if r.Pull.Kind != task.Pull || r.HeadCommit == "" {
		return task.Errorf(task.Invalid, "a review of code is of a commit of a pull request")
	}
	if strings.TrimSpace(r.AnswerText) == "" {
		r.AnswerText = "-" // a pull request that changes nothing can be reviewed
	}
	return checkReview(r)
}

func (s *Service) reviewOfCommit(ctx context.Context, pull task.Key, commit string) (store.Review, error) {
	all, err := s.Store.ListReviews(ctx, store.ReviewFilter{Pull: pull})
	if err != nil {
		return store.Review{}, err
	}
	at := slices.IndexFunc(all, func(r store.Review) bool { return r.HeadCommit == commit })
	if at < 0 {
		return store.Review{}, task.Errorf(task.NotFound, "there is no review of commit %s of %s", commit, pull)
	}
	return all[at], nil
}

// submission is the write that submits a report. It belongs to no run: a review
// that was accepted is submitted, whatever becomes of the task.
func submission(pull task.Key, report judge.Report) (store.Action, error) {
	verdict := forge.Verdict(report.Verdict)
	if !slices.Contains([]forge.Verdict{forge.Approve, forge.Remark, forge.RequestChanges}, verdict) {
		return store.Action{}, task.Errorf(task.Invalid, "there is no verdict %q; it is approve, comment or request_changes", report.Verdict)
	}
	payload := outbox.SubmitReview{Verdict: verdict, Text: report.Text, Commit: report.Commit}
	for _, comment := range report.Comments {
		side := forge.NewSide
		if comment.Old {
			side = forge.OldSide
		}
		payload.Comments = append(payload.Comments, outbox.LineComment{Path: comment.Path, Side: side, Line: comment.Line, Text: comment.Text})
	}
	return outbox.NewAction(verdicts.Submission(pull, report.Commit), payload)
}

// replyTo is the write that answers a comment in a review thread.
func replyTo(pull task.Key, asked store.Message, text string) (store.Action, error) {
	return outbox.NewAction(outbox.Write{Item: pull, What: "reply/" + asked.Origin}, outbox.Reply{Thread: asked.Place, Text: text})
}

// diffs remembers the sections of the newest diff of pull requests that moved on.
type diffs struct {
	mu    sync.Mutex
	known map[task.Key]newest
}

type newest struct {
	head     string
	sections []judge.Section
}

// maxDiffs is how many diffs are remembered. They are small enough, and the forge
// can be asked again.
const maxDiffs = 64

// newerSections returns the sections of the diff as it is now, if the pull request
// has another head than the one that was reviewed. When the forge cannot be asked,
// nothing is said to have moved.
func (s *Service) newerSections(ctx context.Context, r store.Review) (sections []judge.Section, moved bool) {
	source, found := s.Forges[r.Pull.Forge]
	if !ofPull(r) || s.Pulls == nil || !found {
		return nil, false
	}
	snapshot, err := s.Pulls.Get(ctx, r.Pull, s.Pulls.MaxAge(r.Pull))
	if err != nil {
		s.Log.DebugContext(ctx, "failed to check whether citations are stale", "pull", r.Pull.String(), "error", err)
		return nil, false
	}
	head := snapshot.Item.HeadCommit
	if head == "" || head == r.HeadCommit {
		return nil, false
	}
	if kept, ok := s.diffs.get(r.Pull, head); ok {
		return kept, true
	}
	diff, err := source.Diff(ctx, r.Pull)
	if err != nil {
		s.Log.DebugContext(ctx, "failed to read the newer diff; citations count as stale", "pull", r.Pull.String(), "error", err)
		return nil, true
	}
	paper, err := judge.PullPaper(judge.Pull{Commit: head, Diff: diff.Patch, MaxDiff: maxAnswer})
	if err != nil {
		s.Log.DebugContext(ctx, "failed to parse the newer diff; citations count as stale", "pull", r.Pull.String(), "error", err)
		return nil, true
	}
	s.diffs.keep(r.Pull, newest{head, paper.Sections})
	return paper.Sections, true
}

func (d *diffs) get(pull task.Key, head string) ([]judge.Section, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	kept, found := d.known[pull]
	return kept.sections, found && kept.head == head
}

func (d *diffs) keep(pull task.Key, one newest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil || len(d.known) >= maxDiffs {
		d.known = map[task.Key]newest{}
	}
	d.known[pull] = one
}
