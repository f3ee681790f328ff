package relational

import (
	"context"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// CachedAnswer implements store.ForgeCache.
func (s *Store) CachedAnswer(ctx context.Context, key string) (store.CachedAnswer, error) {
	return find(ctx, s, task.Errorf(task.NotFound, "no answer is kept under %q", key), scanAnswer, `SELECT name, etag, last_modified, status, header, body, stored_at
		FROM forge_answers WHERE name = ?`, key)
}

func scanAnswer(r row) (a store.CachedAnswer, err error) {
	var header string
	err = r.Scan(&a.Key, &a.ETag, &a.LastModified, &a.Status, &header, &a.Body, micros{&a.StoredAt})
	a.Header, a.Body = rawJSON(header), nonEmpty(a.Body)
	return a, err
}

// CacheAnswer implements store.ForgeCache.
func (s *Store) CacheAnswer(ctx context.Context, a store.CachedAnswer) error {
	if err := requireName("key of a forge's answer", a.Key); err != nil {
		return err
	}
	if err := checkJSON("header of a forge's answer", a.Header); err != nil {
		return err
	}
	return s.write(ctx, func(q session) error {
		_, err := q.exec(ctx, `INSERT INTO forge_answers (name, etag, last_modified, status, header, body, stored_at)
			VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET etag = excluded.etag, last_modified = excluded.last_modified,
				status = excluded.status, header = excluded.header, body = excluded.body, stored_at = excluded.stored_at`,
			a.Key, a.ETag, a.LastModified, a.Status, string(a.Header), blob(a.Body), made(a.StoredAt).UnixMicro())
		return err
	})
}
