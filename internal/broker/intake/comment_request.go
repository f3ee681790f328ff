package intake

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/task"
)

// requestAge is how old a comment may be that asks for changes. What nobody has acted on for
// so long, because the option was off then, is not begun with when it is put on.
const requestAge = 7 * 24 * time.Hour

// maxRequesters is of how many authors of comments one look reads what they may do.
const maxRequesters = 50

// commentRequests returns the comments on a pull request that ask for changes by what the
// configuration says, of people who may steer it, and that are not over.
//
// What people write into threads of our own reviews never does: they talk with us about the
// review there, and the review chat answers. So no comment has two reactions. Threads that
// are resolved ask for nothing. The time that counts is when a comment was written: an edit
// does not ask again.
func (i *Intake) commentRequests(ctx context.Context, pull pullView, self string, over func(request) bool) ([]request, error) {
	if len(i.options.Rules.FixUpOn) == 0 {
		return nil, nil
	}
	bot, err := i.options.Bot(ctx, pull.Key.Forge)
	if err != nil {
		return nil, err
	}
	snapshot, err := pull.comments()
	if err != nil {
		return nil, err
	}
	reviews, err := pull.reviews()
	if err != nil {
		return nil, err
	}
	silent := func(c task.Comment) bool {
		return !i.options.Rules.fixUpOn(OnMentions) || !forge.Mentions(c.Body, bot, self)
	}
	asking := inOpenReviews(reviews, snapshot.Threads, self)
	if !i.options.Rules.fixUpOn(OnReviewComments) {
		asking = slices.DeleteFunc(asking, silent)
	}
	asking = append(asking, slices.DeleteFunc(slices.Clone(snapshot.Comments), silent)...)
	var found []request
	oldest := i.options.Now().Add(-requestAge)
	for _, comment := range asking {
		byUs := comment.By(self) || comment.By(bot) || forge.Automated(comment.Author)
		if one := requestIn(comment); !byUs && comment.CreatedAt.After(oldest) && !over(one) {
			found = append(found, one)
		}
	}
	return i.ofSteering(ctx, pull.Item, found), nil
}

// requestIn is what a comment asks for.
func requestIn(comment task.Comment) request {
	return request{kind: comment.Kind, Review: forge.Review{
		ID: comment.ID, Author: comment.Author, Verdict: forge.RequestChanges, Body: comment.Body, At: comment.CreatedAt,
	}}
}

// inOpenReviews returns what reviews say that decide nothing: their texts, and the comments in
// threads that are not resolved and that we did not begin.
func inOpenReviews(reviews []forge.Review, threads []forge.ReviewThread, self string) (all []task.Comment) {
	for _, review := range reviews {
		if review.Verdict == forge.Remark && !review.Dismissed && strings.TrimSpace(review.Body) != "" {
			all = append(all, review.Comment())
		}
	}
	for _, thread := range threads {
		if !thread.Resolved && len(thread.Comments) > 0 && !thread.Comments[0].By(self) {
			all = append(all, thread.Comments...)
		}
	}
	return all
}

// ofSteering returns the requests of those who may steer, or of whom that cannot be read now.
// Of many authors the newest count, so that a look costs no more than these.
func (i *Intake) ofSteering(ctx context.Context, pull forge.Item, found []request) []request {
	slices.SortStableFunc(found, func(a, b request) int { return b.At.Compare(a.At) })
	authors := map[string]items.Standing{}
	unclear := map[string]bool{}
	var requests []request
	for _, one := range found {
		author := task.FoldLogin(one.Author)
		standing, known := authors[author]
		if !known {
			if len(authors) == maxRequesters {
				continue
			}
			var err error
			if standing, err = i.options.Steering.Of(ctx, pull, one.Author, nil); err != nil {
				i.options.Log.WarnContext(ctx, "failed to read what the author of a comment may do", "item", pull.Key.String(), "author", one.Author, "error", err)
				unclear[author] = true
			}
			authors[author] = standing
		}
		one.writes, one.unclear = standing.Writes, unclear[author]
		if one.unclear || standing.MaySteer() {
			requests = append(requests, one)
		}
	}
	return requests
}

func (r Rules) fixUpOn(what FixUpOn) bool { return slices.Contains(r.FixUpOn, what) }
