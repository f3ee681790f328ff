package items

import (
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// TrustWebhooks has items read as rarely as the webhooks that tell of them allow, and
// the trust told of the changes that are found. It is called before anything else.
func (s *Snapshots) TrustWebhooks(trust *WebhookTrust) { s.trust = trust }

// MaxAge says how old the snapshot of an item with a running task may be. Webhooks tell
// of confidential items by events of their own, which nobody counts.
func (s *Snapshots) MaxAge(key task.Key) time.Duration {
	s.mu.Lock()
	e, found := s.entries[key]
	confidential := found && e.snapshot.Item.Confidential
	s.mu.Unlock()
	if s.trust == nil || confidential {
		return s.ages.Shortest
	}
	return s.trust.MaxAge(key)
}

// compare tells the trust what has changed between two readings.
func (s *Snapshots) compare(key task.Key, before, after *entry) {
	if s.trust == nil || before.snapshot.ReadAt.IsZero() || after.snapshot.Item.Confidential {
		return
	}
	was, is := before.snapshot.Item, after.snapshot.Item
	if !is.UpdatedAt.Before(was.UpdatedAt) { // else this reading is the older one
		since := before.snapshot.ReadAt
		if is.UpdatedAt.After(was.UpdatedAt) {
			since = earlier(since, is.UpdatedAt) // the reading before may have been behind
		}
		for _, change := range itemChanges(was, is) {
			s.trust.found(key, change, since)
		}
	}
	known := map[task.CommentRef]task.Comment{}
	for _, comment := range slices.Concat(before.snapshot.Comments, before.snapshot.ReviewComments) {
		known[comment.Ref()] = comment
	}
	for _, comment := range slices.Concat(after.snapshot.Comments, after.snapshot.ReviewComments) {
		old, there := known[comment.Ref()]
		switch {
		case !there:
			s.trust.found(key, commentChange(comment), earlier(before.commentsAt, comment.CreatedAt))
		case comment.Kind != task.ItemComment: // forges tell of edits in reviews by different events, or not
		case old.Body != comment.Body && comment.Edited():
			s.trust.found(key, commentChange(comment), earlier(before.commentsAt, comment.UpdatedAt))
		case old.Body != comment.Body:
			s.trust.found(key, commentChange(comment), before.commentsAt)
		}
	}
}

// itemChanges lists in what an item differs, as far as webhooks tell of it.
func itemChanges(was, is forge.Item) []forge.ItemChange {
	var changes []forge.ItemChange
	if was.State != is.State || was.Title != is.Title || was.Body != is.Body {
		changes = append(changes, forge.TextChanged)
	}
	if !sameSet(was.Assignees, is.Assignees) {
		changes = append(changes, forge.AssigneesChanged)
	}
	if !sameSet(was.Labels, is.Labels) {
		changes = append(changes, forge.LabelsChanged)
	}
	if was.HeadCommit != is.HeadCommit {
		changes = append(changes, forge.CommitsChanged)
	}
	return changes
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// commentChange says which change a comment is.
func commentChange(comment task.Comment) forge.ItemChange {
	switch comment.Kind {
	case task.ItemComment:
		return forge.CommentsChanged
	case task.ReviewComment:
		return forge.ReviewCommentsChanged
	default:
		return forge.ReviewsChanged
	}
}

// ListedNew tells the trust of an item that a listing has because of the change, and
// that nobody here has read before. Since is when the last listing was made.
func (s *Snapshots) ListedNew(item forge.Item, change forge.ItemChange, since time.Time) {
	s.mu.Lock()
	e, found := s.entries[item.Key]
	read := found && !e.snapshot.ReadAt.IsZero()
	s.mu.Unlock()
	if s.trust != nil && !read && !item.Confidential {
		s.trust.foundNew(item.Key, change, earlier(since, item.UpdatedAt))
	}
}
