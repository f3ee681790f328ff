package storetest

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var cacheChecks = []check{
	{"an answer is kept and replaced", cacheAnswer},
	{"old answers are pruned", pruneAnswers},
	{"many that store one answer at once leave one whole", cacheTogether},
	{"a key has a limit", cacheKeys},
}

func cacheAnswer(t *testing.T, s store.Store) {
	_, err := s.CachedAnswer(t.Context(), "k")
	wantCode(t, err, task.NotFound)
	first := store.CachedAnswer{
		Key: "k", ETag: `W/"x"`, LastModified: "Mon, 02 Jan 2006 15:04:05 GMT", Status: 200,
		Header: json.RawMessage(`{"Link":["<x>"]}`), Body: []byte{0, 0xff, '\n'}, StoredAt: noon,
	}
	must(t, s.CacheAnswer(t.Context(), first))
	equal(t, got[store.CachedAnswer](t)(s.CachedAnswer(t.Context(), "k")), first)
	second := store.CachedAnswer{Key: "k", Status: 304, StoredAt: noon.Add(time.Hour)}
	must(t, s.CacheAnswer(t.Context(), second))
	equal(t, got[store.CachedAnswer](t)(s.CachedAnswer(t.Context(), "k")), second)
	second.Body = []byte{}
	must(t, s.CacheAnswer(t.Context(), second))
	equal(t, got[store.CachedAnswer](t)(s.CachedAnswer(t.Context(), "k")).Body, nil)
	bad := first
	bad.Header = json.RawMessage(`{`)
	wantCode(t, s.CacheAnswer(t.Context(), bad), task.Invalid)
}

func pruneAnswers(t *testing.T, s store.Store) {
	for i, name := range []string{"a", "b", "c"} {
		must(t, s.CacheAnswer(t.Context(), store.CachedAnswer{Key: name, StoredAt: noon.Add(time.Duration(i) * time.Hour)}))
	}
	equal(t, pruned(t, s, store.KeptAnswers, noon.Add(2*time.Hour)), 2)
	equal(t, pruned(t, s, store.KeptAnswers, noon.Add(2*time.Hour)), 0)
	_, err := s.CachedAnswer(t.Context(), "b")
	wantCode(t, err, task.NotFound)
	equal(t, got[store.CachedAnswer](t)(s.CachedAnswer(t.Context(), "c")).Key, "c")
}

func cacheTogether(t *testing.T, s store.Store) {
	together(8, func(i int) {
		for range 5 {
			body := bytes.Repeat([]byte{byte(i)}, 1000)
			if err := s.CacheAnswer(t.Context(), store.CachedAnswer{Key: "k", Status: i, Body: body}); err != nil {
				t.Error(err)
			}
		}
	})
	answer := got[store.CachedAnswer](t)(s.CachedAnswer(t.Context(), "k"))
	equal(t, answer.Body, bytes.Repeat([]byte{byte(answer.Status)}, 1000))
	if answer.StoredAt.IsZero() {
		t.Fatal("the answer has no time")
	}
}

func cacheKeys(t *testing.T, s store.Store) {
	must(t, s.CacheAnswer(t.Context(), store.CachedAnswer{Key: long(2000)}))
	wantCode(t, s.CacheAnswer(t.Context(), store.CachedAnswer{Key: long(2001)}), task.TooLarge)
	wantCode(t, s.CacheAnswer(t.Context(), store.CachedAnswer{}), task.Invalid)
}
