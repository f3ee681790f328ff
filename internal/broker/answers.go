package broker

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/toryo-dev/toryo/internal/forge/transport"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Answers keeps the answers of forges in the store.
type Answers struct{ Store store.ForgeCache }

var _ transport.Cache = Answers{}

// Get implements transport.Cache.
func (a Answers) Get(ctx context.Context, key string) (transport.CachedResponse, bool, error) {
	kept, err := a.Store.CachedAnswer(ctx, key)
	if task.CodeOf(err) == task.NotFound {
		return transport.CachedResponse{}, false, nil
	}
	if err != nil {
		return transport.CachedResponse{}, false, err
	}
	var header http.Header
	if err := json.Unmarshal(kept.Header, &header); err != nil {
		return transport.CachedResponse{}, false, task.Wrap(task.Internal, err, "the headers of a kept answer cannot be read")
	}
	return transport.CachedResponse{
		ETag: kept.ETag, LastModified: kept.LastModified, Status: kept.Status,
		Header: header, Body: kept.Body, StoredAt: kept.StoredAt,
	}, true, nil
}

// Put implements transport.Cache.
func (a Answers) Put(ctx context.Context, key string, answer transport.CachedResponse) error {
	header, err := json.Marshal(answer.Header)
	if err != nil {
		return task.Wrap(task.Internal, err, "the headers of an answer cannot be kept")
	}
	return a.Store.CacheAnswer(ctx, store.CachedAnswer{
		Key: key, ETag: answer.ETag, LastModified: answer.LastModified, Status: answer.Status,
		Header: header, Body: answer.Body, StoredAt: answer.StoredAt,
	})
}
