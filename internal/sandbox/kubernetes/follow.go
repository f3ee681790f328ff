package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
)

// errGone is what a pod that is not there any more ends with.
var errGone = &lostError{sandbox.NoLimit, "the pod was deleted by somebody else"}

const watchSeconds = "240"

// follow looks at a pod whenever it changes, until see says that it has seen enough or fails,
// or the context ends. It begins with what is known of the pod, which has its name at least.
// It fails with errGone when the pod is gone. The API server may be away meanwhile.
func (a *api) follow(ctx context.Context, now pod, see func(pod) (enough bool, err error)) error {
	wait := 50 * time.Millisecond
	name := now.Metadata.Name
	var err error
	if now.Metadata.ResourceVersion == "" {
		now, err = a.getPod(ctx, name)
	}
	for {
		switch {
		case isStatus(err, http.StatusNotFound):
			return errGone
		case err != nil && !isTemporary(err):
			return err
		case err == nil:
			wait = 50 * time.Millisecond
			if enough, err := see(now); enough || err != nil {
				return err
			}
			enough, err := a.watch(ctx, now, see)
			if enough || (err != nil && !isTemporary(err)) {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
			wait = min(2*wait, 2*time.Second)
		}
		now, err = a.getPod(ctx, name)
	}
}

func (a *api) getPod(ctx context.Context, name string) (pod, error) {
	var found pod
	err := a.call(ctx, http.MethodGet, a.path("pods", name), nil, nil, &found)
	return found, err
}

// watch sees the changes of a pod until the API server ends the stream.
func (a *api) watch(ctx context.Context, from pod, see func(pod) (bool, error)) (enough bool, err error) {
	answer, err := a.request(ctx, http.MethodGet, a.path("pods"), url.Values{
		"watch": {"true"}, "fieldSelector": {"metadata.name=" + from.Metadata.Name},
		"resourceVersion": {from.Metadata.ResourceVersion}, "timeoutSeconds": {watchSeconds},
	}, "", nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = answer.Body.Close() }()
	events := json.NewDecoder(answer.Body)
	for {
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := events.Decode(&event); err != nil {
			return false, ctx.Err() // the stream's end: look anew
		}
		switch event.Type {
		case "DELETED":
			return true, errGone
		case "ADDED", "MODIFIED":
			var now pod
			if err := json.Unmarshal(event.Object, &now); err != nil {
				return false, err
			}
			if enough, err := see(now); enough || err != nil {
				return true, err
			}
		default:
			return false, nil // too old: look anew
		}
	}
}

// remove deletes a pod at once. One that is gone is not an error.
func (a *api) remove(ctx context.Context, name string) error {
	err := a.retry(ctx, removeTimeout, func() error {
		return a.call(ctx, http.MethodDelete, a.path("pods", name), nil, object{"gracePeriodSeconds": 0}, nil)
	})
	if isStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// removeIf deletes a pod if nothing of it has changed since it was seen.
func (a *api) removeIf(ctx context.Context, seen pod) error {
	err := a.call(ctx, http.MethodDelete, a.path("pods", seen.Metadata.Name), nil, object{"gracePeriodSeconds": 0,
		"preconditions": object{"uid": seen.Metadata.UID, "resourceVersion": seen.Metadata.ResourceVersion}}, nil)
	if isStatus(err, http.StatusNotFound) || isStatus(err, http.StatusConflict) {
		return nil
	}
	return err
}

const removeTimeout = 30 * time.Second

// asLost is the reason for which a sandbox is gone, if the error is one.
func asLost(err error) (*lostError, bool) { return errors.AsType[*lostError](err) }
