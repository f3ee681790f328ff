package task

import (
	"slices"
	"strings"
)

// Words of an occasion: what a task that changes a pull request is for. For example
// "2026-11-16T09:30:00Z comment 5", or, after the pull request was closed and opened again,
// "2026-11-16T09:30:00Z comment 5 reopened 2026-11-16T10:00:00Z".
const (
	OccasionComment = "comment" // with its ID
	OccasionReview  = "review"  // that requests changes
	// OccasionBody is the text of a review that decides nothing, with the ID of the review:
	// forges may count reviews and comments separately.
	OccasionBody     = "body"
	OccasionReopened = "reopened" // with the moment
)

// CommentOf reports whether an occasion is something that was written, and no decision: a
// comment, of which it returns the ID, or the text of a review.
func CommentOf(occasion string) (id string, written bool) {
	words := strings.Fields(occasion)
	if len(words) != 3 && (len(words) != 5 || words[3] != OccasionReopened) {
		return "", false
	}
	switch words[1] {
	case OccasionComment:
		return words[2], true
	case OccasionBody:
		return "", true
	default:
		return "", false
	}
}

// OnlyComment reports whether a fix-up was assigned for a comment, or for the text of a review that
// decides nothing, and no review that requests changes stands besides: that has to be dealt with.
// Summaries are the texts of the reviews.
func OnlyComment(cause Reason, occasion string, summaries []CommentEntry) bool {
	_, written := CommentOf(occasion)
	return written && cause == ReasonChangesRequested &&
		!slices.ContainsFunc(summaries, func(c CommentEntry) bool { return c.Refused == "" })
}
