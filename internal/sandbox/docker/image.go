package docker

import (
	"context"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// image makes sure that the image is there, and pulls it if not.
func (e *Engine) image(ctx context.Context, name string, progress func(string)) (client.ImageInspectResult, error) {
	if name == "" {
		return client.ImageInspectResult{}, task.Errorf(task.Invalid, "no image is named for the container")
	}
	found, err := e.api.ImageInspect(ctx, name)
	if err == nil {
		return found, nil
	}
	if !errdefs.IsNotFound(err) {
		return found, failed(err, "the image "+name+" cannot be looked at")
	}
	progress("pulling the image " + name)
	pulled, err := e.api.ImagePull(ctx, name, client.ImagePullOptions{})
	if err != nil {
		return found, pullFailed(name, err)
	}
	defer func() { _ = pulled.Close() }()
	last := ""
	for message, err := range pulled.JSONMessages(ctx) {
		if err != nil {
			return found, pullFailed(name, err)
		}
		if message.Error != nil {
			return found, pullFailed(name, message.Error)
		}
		if text := message.Status; text != "" && text != last {
			last = text
			progress(name + ": " + text)
		}
	}
	found, err = e.api.ImageInspect(ctx, name)
	if err != nil {
		return found, failed(err, "the image "+name+" cannot be looked at")
	}
	return found, nil
}

// refusals match what daemons say, in lower case, of an image that a registry does not have or
// does not give. Words such as "denied" and "not found" alone are also said of files and hosts.
var refusals = lazyregexp.New(strings.Join([]string{
	`manifest unknown`,
	`manifest for \S+ not found`,
	`failed to resolve reference "[^"]*": \S+: not found`,
	`repository does not exist`,
	`name unknown`,
	`unauthorized to access repository`,
	`pull access denied`,
	`requested access to the resource is denied`,
	`/manifests/\S+": (?:denied|unauthorized)`,
	`unauthorized: (?:authentication required|access to the requested resource)`,
	`invalid reference format`,
}, "|"))

// pullFailed gives the error of a pull its code: NotFound if the registry has no such image for
// us, and NotReady if it could not be asked, or there is no room for the image.
func pullFailed(name string, err error) error {
	if client.IsErrConnectionFailed(err) {
		return notReady(err)
	}
	text := strings.ToLower(err.Error())
	refused := errdefs.IsNotFound(err) || refusals.MatchString(text)
	err = sandbox.WithTextReason(err, text)
	if !refused {
		return task.Wrap(task.NotReady, err, "the image "+name+" is not here, and pulling it has failed").
			WithHint("see whether this machine reaches the registry and has room for the image, or load the image into the engine")
	}
	return task.Wrap(task.NotFound, err, "the image "+name+" is not here and cannot be pulled").
		WithHint("name another image for the environment in the configuration, or load it into the engine")
}
