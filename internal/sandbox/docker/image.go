package docker

import (
	"context"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

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

func pullFailed(name string, err error) error {
	if client.IsErrConnectionFailed(err) {
		return notReady(err)
	}
	return task.Wrap(task.NotFound, sandbox.WithTextReason(err, err.Error()), "the image "+name+" is not here and cannot be pulled").
		WithHint("name another image for the environment in the configuration, or load it into the engine")
}
