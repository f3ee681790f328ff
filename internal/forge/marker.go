package forge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

const (
	markerStart = "<!-- toryo:"
	markerEnd   = " -->"
)

// Marker is hidden in what we post, so that it can be found again. It is an HTML
// comment, which no forge shows. The zero value is no marker.
type Marker struct{ digest string }

// MarkerOf returns the marker for an idempotency key. Different keys have
// different markers, and the key cannot be read from the marker.
func MarkerOf(idempotencyKey string) Marker {
	sum := sha256.Sum256([]byte(idempotencyKey))
	return Marker{hex.EncodeToString(sum[:16])}
}

// String is the marker as it is hidden in a text.
func (m Marker) String() string {
	if m == (Marker{}) {
		return ""
	}
	return markerStart + m.digest + markerEnd
}

// In reports whether a body that was read from a forge is of a post with this
// marker. The marker counts only as the last line, where [Text.With] puts it, so
// that a quotation of it further up does not. Whether the body is ours at all the
// caller has to know by its author.
func (m Marker) In(body string) bool {
	if m == (Marker{}) {
		return false
	}
	body = strings.TrimRight(body, " \t\r\n")
	last := body[strings.LastIndexByte(body, '\n')+1:]
	return strings.TrimSpace(last) == m.String()
}

// StripMarker returns a body without the marker at its end: what people see.
func StripMarker(body string) string {
	trimmed := strings.TrimRight(body, " \t\r\n")
	at := strings.LastIndexByte(trimmed, '\n') + 1
	last := strings.TrimSpace(trimmed[at:])
	if !strings.HasPrefix(last, markerStart) || !strings.HasSuffix(last, markerEnd) {
		return body
	}
	return strings.TrimRight(trimmed[:at], " \t\r\n")
}

// Programs are the authors of what was posted by this program, folded (see [task.FoldLogin]), under
// whatever account: our own before it was changed, or that of another installation. Their comments on
// lines have no marker.
func Programs(comments []task.Comment) map[string]bool {
	all := map[string]bool{}
	for _, comment := range comments {
		if StripMarker(comment.Body) != comment.Body {
			all[task.FoldLogin(comment.Author)] = true
		}
	}
	return all
}

// FindMarked returns the first of the comments that is by the login and has the
// marker: how an adapter looks before it repeats.
func FindMarked(comments []task.Comment, login string, marker Marker) (task.Comment, bool) {
	for _, comment := range comments {
		if comment.By(login) && marker.In(comment.Body) {
			return comment, true
		}
	}
	return task.Comment{}, false
}

// FindOwnComment is what FindComment of an adapter does: it looks among the
// item's comments for the oldest that is ours and has the marker.
func FindOwnComment(ctx context.Context, of Reader, key task.Key, marker Marker) (task.Comment, bool, error) {
	self, err := of.Self(ctx)
	if err != nil {
		return task.Comment{}, false, err
	}
	comments, err := of.Comments(ctx, key)
	if err != nil {
		return task.Comment{}, false, err
	}
	comment, found := FindMarked(comments, self, marker)
	return comment, found, nil
}

// FindOwnReview looks among the reviews of a pull request for the oldest that is
// ours and has the marker.
func FindOwnReview(ctx context.Context, of Forge, key task.Key, marker Marker) (Review, bool, error) {
	self, err := of.Self(ctx)
	if err != nil {
		return Review{}, false, err
	}
	reviews, err := of.Reviews(ctx, key)
	if err != nil {
		return Review{}, false, err
	}
	for _, review := range reviews {
		if task.SameLogin(review.Author, self) && marker.In(review.Body) {
			return review, true, nil
		}
	}
	return Review{}, false, nil
}
