package review

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// maxReplyAttempts is how often a reply is tried to be answered.
	maxReplyAttempts = 5
	// maxReplies is how many replies in one conversation are answered: two bots
	// must not talk with each other for ever.
	maxReplies = 100
	// clockSkew is how much the clocks of a forge and ours may differ.
	clockSkew = time.Minute
	// quotedComment is how much of our own comment is repeated in a turn.
	quotedComment = 2000
)

// Reply is what a person wrote under the bot's review.
type Reply struct {
	Thread  forge.ReviewThread
	Comment task.Comment
}

// Replies returns what people wrote into the review threads that the bot opened,
// oldest first.
func Replies(threads []forge.ReviewThread, self string) []Reply {
	var replies []Reply
	for _, thread := range threads {
		if len(thread.Comments) == 0 || !thread.Comments[0].By(self) {
			continue
		}
		for _, comment := range thread.Comments[1:] {
			if !comment.By(self) && !forge.Automated(comment.Author) {
				replies = append(replies, Reply{thread, comment})
			}
		}
	}
	slices.SortStableFunc(replies, func(a, b Reply) int { return a.Comment.CreatedAt.Compare(b.Comment.CreatedAt) })
	return replies
}

// LookAtPull reads the review threads of a pull request and answers what people
// replied there. It may be called as often as one likes, on any number of servers:
// each comment is a turn once. It tries again those replies that could not be answered
// only if it is to: a change of the pull request is no reason to use up their attempts.
func (s *Service) LookAtPull(ctx context.Context, pull task.Key, again bool) error {
	reviews, err := s.Store.ListReviews(ctx, store.ReviewFilter{Pull: pull})
	if err != nil || len(reviews) == 0 {
		return err
	}
	source, found := s.Forges[pull.Forge]
	if !found {
		return task.Errorf(task.Unsupported, "no forge %s is configured", pull.Forge)
	}
	self, err := source.Self(ctx)
	if err != nil {
		return err
	}
	threads, err := source.ReviewThreads(ctx, pull)
	if err != nil {
		return fmt.Errorf("read the review threads of %s: %w", pull, err)
	}
	var failed []error
	for _, reply := range Replies(threads, self) {
		if err := s.replied(ctx, pull, reply, again); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// replied makes a person's reply a turn of the thread of the review that it is
// under, and returns when it is answered. A comment that was taken before is
// nothing new, and one of somebody who may not steer the pull request is not answered:
// every answer costs, and strangers could ask for any number of them.
func (s *Service) replied(ctx context.Context, pull task.Key, reply Reply, again bool) error {
	before, err := s.Store.MessageOf(ctx, pull, reply.Comment.ID)
	switch {
	case err == nil && (!again || !s.worthAnother(before)):
		return nil
	case err != nil && task.CodeOf(err) != task.NotFound:
		return err
	}
	snapshot, err := s.Pulls.Get(ctx, pull, s.Pulls.MaxAge(pull))
	if err != nil {
		return fmt.Errorf("read %s: %w", pull, err)
	}
	standing, err := s.Steering.Of(ctx, snapshot.Item, reply.Comment.Author, nil)
	if err != nil {
		return fmt.Errorf("read what %s may do: %w", reply.Comment.Author, err)
	}
	if !standing.MaySteer() {
		s.Log.DebugContext(ctx, "ignored a reply to a review: its author may not steer", "pull", pull.String(),
			"author", reply.Comment.Author, "access", standing.Access, "reason", standing.Refused)
		return nil
	}
	record, err := s.reviewOf(ctx, pull, reply)
	if err != nil {
		return err
	}
	return s.answerReply(ctx, record, reply)
}

// worthAnother reports whether a reply that was taken before is to be tried again.
func (s *Service) worthAnother(before store.Message) bool {
	switch before.State {
	case store.Unanswered:
		return before.Attempts < maxReplyAttempts
	case store.Answering:
		return !before.HeldUntil.After(s.Now()) && before.Attempts < maxReplyAttempts
	default:
		return false
	}
}

// reviewOf is the review that a thread was opened by: the newest one that was there
// when it was opened.
func (s *Service) reviewOf(ctx context.Context, pull task.Key, reply Reply) (store.Review, error) {
	all, err := s.Store.ListReviews(ctx, store.ReviewFilter{Pull: pull})
	if err != nil {
		return store.Review{}, err
	}
	if len(all) == 0 {
		return store.Review{}, task.Errorf(task.NotFound, "there is no review of %s", pull)
	}
	found := all[0]
	for _, review := range all {
		if !review.CreatedAt.After(reply.Thread.Comments[0].CreatedAt.Add(clockSkew)) {
			found = review
		}
	}
	return found, nil
}

func (s *Service) answerReply(ctx context.Context, record store.Review, reply Reply) error {
	thread, err := s.Store.SharedThread(ctx, record.ID, "") // its language follows the people
	if err != nil {
		return err
	}
	said, err := s.Store.Messages(ctx, thread.ID)
	if err != nil {
		return err
	}
	if len(said) >= 2*maxReplies {
		s.Log.InfoContext(ctx, "a conversation on a forge is too long to continue", "thread", thread.ID, "pull", record.Pull.String())
		return nil
	}
	content := forge.Clean(replyText(record, reply))
	if len(content) > maxMessage {
		content = strings.ToValidUTF8(content[:maxMessage], "")
	}
	turn, err := s.ask(ctx, thread, record, store.Ask{
		Content: content, Author: reply.Comment.Author, Origin: reply.Comment.ID, Place: reply.Thread.ID,
	})
	if task.CodeOf(err) == task.Conflict {
		return nil // another server was quicker
	}
	if err != nil {
		return err
	}
	_, err = turn.Follow(ctx, nil)
	return err
}

// replyText is a reply as a message: where it stands, what we had said there, and
// what the person says. It names the section, so that this is given to the model.
func replyText(record store.Review, reply Reply) string {
	var b strings.Builder
	anchor := reply.Thread.Anchor
	if number, found := sectionOf(record.AnswerText, anchor); found {
		fmt.Fprintf(&b, "§%d ", number)
	}
	if anchor.Path != "" {
		b.WriteString(anchor.String() + "\n")
	}
	ours := forge.StripMarker(reply.Thread.Comments[0].Body)
	if len(ours) > quotedComment {
		ours = strings.ToValidUTF8(ours[:quotedComment], "") + "…"
	}
	if ours != "" {
		b.WriteString("> " + strings.ReplaceAll(strings.TrimSpace(ours), "\n", "\n> ") + "\n\n")
	}
	return b.String() + forge.StripMarker(reply.Comment.Body)
}

// sectionOf finds the hunk that an anchor is in.
func sectionOf(answer string, anchor forge.Anchor) (int, bool) {
	for _, section := range judge.ParseSections(answer) {
		hunk, isHunk := judge.ParseHunk(section.Text)
		if !isHunk {
			continue
		}
		if _, found := hunk.At(judge.Place{Path: anchor.Path, Line: anchor.Line, Old: anchor.Side == forge.OldSide}); found {
			return section.Number, true
		}
	}
	return 0, false
}
