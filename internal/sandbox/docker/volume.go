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
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
)

// guestVolume is the volume with the guest's program. Its name has the program's
// digest in it, so that each version of the program has its own.
type guestVolume struct {
	mutex sync.Mutex
	name  string // empty until it is filled
}

const (
	guestFolder = "/.toryo"
	guestFile   = "guest"
	guestPrefix = "toryo-guest-"
	guestMark   = "whole" // written after the program, so that half a copy is told from a whole one
)

// fill makes the volume, with the help of a container that is never started.
func (g *guestVolume) fill(ctx context.Context, e *Engine, image string) (string, error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.name != "" && g.isThere(ctx, e) {
		return g.name, nil
	}
	program, err := os.ReadFile(e.config.Guest)
	if err != nil {
		return "", fmt.Errorf("read the guest's program: %w", err)
	}
	digest := sha256.Sum256(program)
	name := guestPrefix + hex.EncodeToString(digest[:8])
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
	g.removeOthers(ctx, e)
	return name, nil
}

// isThere reports whether the volume is still there. Another version of the
// program, or a person, may have taken it for an old one.
func (g *guestVolume) isThere(ctx context.Context, e *Engine) bool {
	_, err := e.api.VolumeInspect(ctx, g.name, client.VolumeInspectOptions{})
	return !errdefs.IsNotFound(err) // another error will show when it is used
}

// oldAfter is for how long the volume of another version is left alone. That
// version may be running, and between two sandboxes.
const oldAfter = 24 * time.Hour

// removeOthers removes volumes of other versions that no container uses. That one
// stays is no harm, and is not told to anybody but the log.
func (g *guestVolume) removeOthers(ctx context.Context, e *Engine) {
	found, err := e.api.VolumeList(ctx, client.VolumeListOptions{Filters: client.Filters{}.Add("name", guestPrefix).Add("dangling", "true")})
	if err != nil {
		e.config.Log.DebugContext(ctx, "docker: failed to list volumes", "error", err)
		return
	}
	for _, volume := range found.Items {
		made, err := time.Parse(time.RFC3339, volume.CreatedAt)
		if err != nil || volume.Name == g.name || !strings.HasPrefix(volume.Name, guestPrefix) || e.config.Now().Sub(made) < oldAfter {
			continue
		}
		_, err = e.api.VolumeRemove(ctx, volume.Name, client.VolumeRemoveOptions{})
		e.config.Log.DebugContext(ctx, "docker: removed the guest volume of another version", "volume", volume.Name, "error", err)
	}
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
