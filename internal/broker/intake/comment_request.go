package intake

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// requestAge is how old a comment may be that asks for changes. What nobody has acted on for
// so long, because the option was off then, is not begun with when it is put on.
const requestAge = 7 * 24 * time.Hour

// commentRequests returns the comments on a pull request that ask for changes by what the
// configuration says, of people who may steer it.
//
// What people write into threads of our own reviews never does: they talk with us about the
// review there, and the review chat answers. So no comment has two reactions. Threads that
// are resolved ask for nothing. The time that counts is when a comment was written: an edit
// does not ask again.
func (i *Intake) commentRequests(ctx context.Context, pull pullView, self string) ([]request, error) {
	if len(i.options.Rules.FixUpOn) == 0 {
		return nil, nil
	}
	bot, err := i.options.Bot(ctx, pull.Key.Forge)
	if err != nil {
		return nil, err
	}
	snapshot, err := i.options.Snapshots.Get(ctx, pull.Key, longestLook)
	if err != nil {
		return nil, err
	}
	reviews, err := pull.reviews()
	if err != nil {
		return nil, err
	}
	var found []task.Comment
	add := func(comment task.Comment, ofReview bool) {
		asks := ofReview && i.options.Rules.fixUpOn(OnReviewComments) ||
			i.options.Rules.fixUpOn(OnMentions) && forge.Mentions(comment.Body, bot, self)
		byUs := comment.By(self) || comment.By(bot) || forge.Automated(comment.Author)
		if asks && !byUs && comment.CreatedAt.After(i.options.Now().Add(-requestAge)) {
			found = append(found, comment)
		}
	}
	for _, comment := range snapshot.Comments {
		add(comment, false)
	}
	for _, review := range reviews {
		if review.Verdict == forge.Remark && !review.Dismissed && strings.TrimSpace(review.Body) != "" {
			add(review.Comment(), true)
		}
	}
	for _, thread := range snapshot.Threads {
		if thread.Resolved || len(thread.Comments) == 0 || thread.Comments[0].By(self) {
			continue
		}
		for _, comment := range thread.Comments {
			add(comment, true)
		}
	}
	return i.ofSteering(ctx, pull.Item, found)
}

// ofSteering makes requests of the comments of those who may steer.
func (i *Intake) ofSteering(ctx context.Context, pull forge.Item, comments []task.Comment) ([]request, error) {
	var requests []request
	for _, comment := range comments {
		standing, err := i.options.Steering.Of(ctx, pull, comment.Author, nil)
		if err != nil {
			return nil, err
		}
		if standing.MaySteer() {
			requests = append(requests, request{kind: comment.Kind, Review: forge.Review{
				ID: comment.ID, Author: comment.Author, Verdict: forge.RequestChanges, Body: comment.Body, At: comment.CreatedAt,
			}})
		}
	}
	return requests, nil
}

func (r Rules) fixUpOn(what FixUpOn) bool { return slices.Contains(r.FixUpOn, what) }
