package relational

import (
	"context"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// SaveLink implements store.SavedLinks.
func (s *Store) SaveLink(ctx context.Context, link store.SavedLink) error {
	if err := requireName("name of a link", link.Name); err != nil {
		return err
	}
	if err := checkName("path of a link", link.Path); err != nil {
		return err
	}
	owner := assigneeMark.fold(link.Owner)
	return s.write(ctx, func(q session) error {
		others, _, err := first(ctx, q, scanNumber, `SELECT COUNT(*) FROM saved_links WHERE owner = ? AND name <> ?`, owner, link.Name)
		if err != nil {
			return err
		}
		if others >= store.MostSavedLinks {
			return task.Errorf(task.TooLarge, "%s has %d saved links; there can be no more", link.Owner, others).WithHint("remove one of them first")
		}
		_, err = q.exec(ctx, `INSERT INTO saved_links (owner, name, path, created_at) VALUES (`+listOf(4)+`)
			ON CONFLICT (owner, name) DO UPDATE SET path = excluded.path, created_at = excluded.created_at`,
			owner, link.Name, link.Path, made(link.CreatedAt).UnixMicro())
		if q.dialect.Classify(err) == MissingReference {
			return noUser(link.Owner)
		}
		return err
	})
}

// LinksOf implements store.SavedLinks.
func (s *Store) LinksOf(ctx context.Context, owner string) ([]store.SavedLink, error) {
	return all(ctx, s, func(r row) (link store.SavedLink, err error) {
		err = r.Scan(&link.Owner, &link.Name, &link.Path, micros{&link.CreatedAt})
		return link, err
	}, `SELECT users.login, saved_links.name, saved_links.path, saved_links.created_at FROM saved_links
		JOIN users ON users.folded = saved_links.owner WHERE saved_links.owner = ? ORDER BY saved_links.name`, assigneeMark.fold(owner))
}

// RemoveLink implements store.SavedLinks.
func (s *Store) RemoveLink(ctx context.Context, owner, name string) error {
	return s.write(ctx, func(q session) error {
		_, err := q.exec(ctx, `DELETE FROM saved_links WHERE owner = ? AND name = ?`, assigneeMark.fold(owner), name)
		return err
	})
}
