package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

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
	return task.Wrap(task.NotFound, err, "the image "+name+" is not here and cannot be pulled").
		WithMend("name another image for the environment in the configuration, or load it into the engine")
}

// guestVolume is the volume with the guest's program. Its name has the program's
// digest in it, so that each version of the program has its own.
type guestVolume struct {
	mutex sync.Mutex
	name  string // empty until it is filled
}

const (
	guestFolder = "/.toryo"
	guestFile   = "guest"
	guestMark   = "whole" // written after the program, so that half a copy is told from a whole one
)

// fill makes the volume, with the help of a container that is never started.
func (g *guestVolume) fill(ctx context.Context, e *Engine, image string) (string, error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.name != "" {
		return g.name, nil
	}
	program, err := os.ReadFile(e.config.Guest)
	if err != nil {
		return "", fmt.Errorf("read the guest's program: %w", err)
	}
	digest := sha256.Sum256(program)
	name := "toryo-guest-" + hex.EncodeToString(digest[:8])
	made, err := e.api.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config:     &container.Config{Image: image, Entrypoint: []string{"none"}},
		HostConfig: &container.HostConfig{NetworkMode: "none", Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: name, Target: guestFolder}}},
	})
	if err != nil {
		return "", failed(err, "the guest's volume cannot be made")
	}
	err = g.copy(ctx, e, made.ID, program)
	if err := errors.Join(err, e.remove(context.WithoutCancel(ctx), made.ID)); err != nil {
		return "", err
	}
	g.name = name
	return name, nil
}

func (g *guestVolume) copy(ctx context.Context, e *Engine, id string, program []byte) error {
	_, err := e.api.ContainerStatPath(ctx, id, client.ContainerStatPathOptions{Path: guestFolder + "/" + guestMark})
	if err == nil {
		return nil
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{{guestFile, program}, {guestMark, nil}} {
		var archive bytes.Buffer
		if err := writeTar(&archive, tar.Header{Name: file.name, Mode: 0o755, Size: int64(len(file.content)), Typeflag: tar.TypeReg}, file.content); err != nil {
			return err
		}
		if _, err := e.api.CopyToContainer(ctx, id, client.CopyToContainerOptions{DestinationPath: guestFolder, Content: &archive}); err != nil {
			return failed(err, "the guest's program cannot be copied to the engine")
		}
	}
	return nil
}

func writeTar(to io.Writer, header tar.Header, content []byte) error {
	header.ModTime = time.Unix(0, 0)
	archive := tar.NewWriter(to)
	if err := archive.WriteHeader(&header); err != nil {
		return err
	}
	if _, err := archive.Write(content); err != nil {
		return err
	}
	return archive.Close()
}
