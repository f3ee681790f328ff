package review

import (
	"context"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// AddThread begins a conversation about a review. Without a language it follows the
// messages of its person, and begins with that of the review.
func (s *Service) AddThread(ctx context.Context, who, reviewID string, language task.Language) (store.Thread, error) {
	if err := named(who); err != nil {
		return store.Thread{}, err
	}
	if language != "" && language != task.Japanese && language != task.English {
		return store.Thread{}, task.Errorf(task.Invalid, "there is no language %q; it is ja or en", string(language))
	}
	found, err := s.Review(ctx, who, reviewID)
	if err == nil {
		err = checkJudged(found)
	}
	if err != nil {
		return store.Thread{}, err
	}
	made, err := s.Store.AddThread(ctx, store.Thread{ReviewID: found.ID, Owner: who, Language: string(language), CreatedAt: s.Now()})
	if err != nil {
		return store.Thread{}, err
	}
	return s.withLanguage(ctx, made, found)
}

// ThreadFor is the conversation that begins with a message of a page: a new one, unless the
// message was sent before.
func (s *Service) ThreadFor(ctx context.Context, who, reviewID, key string) (store.Thread, error) {
	if key != "" {
		begun, found, err := store.Optional(s.Store.ThreadWith(ctx, reviewID, who, keyOrigin+key))
		if err != nil {
			return store.Thread{}, err
		}
		if found {
			return s.Thread(ctx, who, begun.ID)
		}
	}
	return s.AddThread(ctx, who, reviewID, "")
}

// keyOrigin begins the origin of a message that a page has sent with a name of its own.
const keyOrigin = "page/"

// Thread returns a thread that the caller may see.
func (s *Service) Thread(ctx context.Context, who, id string) (store.Thread, error) {
	found, record, err := s.thread(ctx, who, id)
	if err != nil {
		return store.Thread{}, err
	}
	return s.withLanguage(ctx, found, record)
}

// thread is Thread as it is stored, without a language if it follows its person, and the
// review that it is about.
func (s *Service) thread(ctx context.Context, who, id string) (store.Thread, store.Review, error) {
	found, err := s.Store.Thread(ctx, id)
	if err != nil {
		return store.Thread{}, store.Review{}, err
	}
	record, err := s.Store.Review(ctx, found.ReviewID)
	if err != nil {
		return store.Thread{}, store.Review{}, err
	}
	may, err := s.mayRead(ctx, record, who) // it may have been shared once
	if err == nil && (!may || !isIn(found, who)) {
		err = task.Errorf(task.NotFound, "there is no thread %q", id)
	}
	if err != nil {
		return store.Thread{}, store.Review{}, err
	}
	return found, record, nil
}

// isIn reports whether a thread is the caller's, or that of the people on the forge.
func isIn(t store.Thread, who string) bool {
	return who != "" && (t.Owner == "" || t.Owner == who)
}

// Threads returns the caller's threads about a review, and that of the people on
// the forge.
func (s *Service) Threads(ctx context.Context, who, reviewID string) ([]store.Thread, error) {
	record, err := s.Review(ctx, who, reviewID)
	if err != nil {
		return nil, err
	}
	found, err := s.Store.ListThreads(ctx, record.ID)
	if err != nil {
		return nil, err
	}
	var visible []store.Thread
	for _, thread := range found {
		if !isIn(thread, who) && thread.Owner != "" {
			continue
		}
		if thread, err = s.withLanguage(ctx, thread, record); err != nil {
			return nil, err
		}
		visible = append(visible, thread)
	}
	return visible, nil
}

// ThreadsOf returns the caller's newest threads, about one review or about all, newest
// first, with those of the people on the forge. The language of one in which nothing was
// said is empty.
func (s *Service) ThreadsOf(ctx context.Context, who, reviewID string, limit int) ([]store.ThreadEntry, error) {
	if err := named(who); err != nil {
		return nil, err
	}
	found, err := s.Store.ThreadsOf(ctx, who, reviewID, limit)
	for i, one := range found {
		found[i].Language = string(s.told(one.Thread))
	}
	return found, err
}
