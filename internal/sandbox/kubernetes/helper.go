package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// identity is what an image was when it was last looked at. A name may stand for
// another image later.
type identity struct {
	digest string
	at     time.Time
}

const identityAge = time.Hour

// helperOwner is who helpers belong to that no run has asked for.
const helperOwner = "toryo"

// Identity is the digest of the image, as the cluster has it.
func (e *Engine) Identity(ctx context.Context, image string) (string, error) {
	if image == "" {
		return "", task.Errorf(task.Invalid, "no image is named for the pod")
	}
	if _, digest, found := strings.Cut(image, "@"); found {
		return digest, nil
	}
	e.mutex.Lock()
	known := e.identities[image]
	e.mutex.Unlock()
	if known.digest != "" && e.config.Now().Sub(known.at) < identityAge {
		return known.digest, nil
	}
	digest := ""
	err := e.help(ctx, image, []string{"true"}, false, func(now pod) (bool, error) {
		if len(now.Status.Containers) > 0 {
			digest = now.Status.Containers[0].ImageID
		}
		return digest != "", nil
	})
	if err != nil {
		return "", err
	}
	e.noteIdentity(image, digest)
	return digest, nil
}

func (e *Engine) noteIdentity(image, digest string) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.identities[image] = identity{digest, e.config.Now()}
}

// help runs a container besides the sandboxes until enough of it was seen. It may
// have the whole claim.
func (e *Engine) help(ctx context.Context, image string, command []string, claim bool, enough func(pod) (bool, error)) error {
	name := newPodName()
	draft := e.pod(name, helperOwner, partHelper, e.container(image, command))
	draft.container["resources"] = littleResources()
	if claim {
		draft.volumes = []object{{"name": "claim", "persistentVolumeClaim": object{"claimName": e.config.Claim}}}
		draft.mounts = []object{{"name": "claim", "mountPath": snapshotPath}}
	}
	ctx, cancel := context.WithTimeout(ctx, e.config.StartTimeout)
	defer cancel()
	now, maybe, err := e.createGivingWay(ctx, name, draft.manifest())
	if !maybe {
		return err
	}
	defer func() {
		if err := e.api.remove(context.WithoutCancel(ctx), name); err != nil {
			e.config.Log.WarnContext(ctx, "kubernetes: failed to remove a helper pod", "pod", name, "error", err)
		}
	}()
	if err != nil {
		return err
	}
	err = e.api.follow(ctx, now, func(now pod) (bool, error) {
		if seen, err := enough(now); seen || err != nil {
			return seen, err
		}
		return false, now.trouble(image)
	})
	return asStartError(err)
}

// create makes a pod. The name is ours alone, so that asking twice makes one. An
// error that is not maybe says for sure that there is none.
func (e *Engine) create(ctx context.Context, name string, made object) (now pod, maybe bool, err error) {
	err = e.api.retry(ctx, createTimeout, func() error {
		err := e.api.call(ctx, http.MethodPost, e.api.path("pods"), nil, made, &now)
		_, answered := errors.AsType[*statusError](err)
		if err != nil && !isDial(err) && (!answered || isTemporary(err)) {
			maybe = true // also when nobody waits for the answer any more
		}
		if isStatus(err, http.StatusConflict) {
			if found, there := e.api.getPod(ctx, name); there == nil {
				now = found
				return nil // an earlier try did it, and its answer was lost
			}
		}
		return err
	})
	now.Metadata.Name = name
	if err != nil {
		return now, maybe, failed(err, "a pod cannot be made")
	}
	return now, true, nil
}

const createTimeout = 15 * time.Second
