package store

import (
	"context"
	"time"
)

// SavedLink is a list on the pages that somebody wants to come back to, as it was narrowed and
// in the order that it had.
type SavedLink struct {
	Owner     string // a login of [User]
	Name      string
	Path      string // with its query
	CreatedAt time.Time
}

// MostSavedLinks is how many links one user has at most.
const MostSavedLinks = 50

// SavedLinks keeps such links.
type SavedLinks interface {
	// SaveLink stores a link in place of the one of its owner that has the name. It fails with
	// NotFound if there is no such user, with Invalid if the name is empty, and with TooLarge if
	// the owner has as many links as one may.
	SaveLink(ctx context.Context, link SavedLink) error
	// LinksOf returns the links of a user, in the order of their names.
	LinksOf(ctx context.Context, owner string) ([]SavedLink, error)
	// RemoveLink removes a link. One that is not there is no error.
	RemoveLink(ctx context.Context, owner, name string) error
}
