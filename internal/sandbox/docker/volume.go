package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/volume"
	"github.com/moby/moby/client"
)

// guestVolume is the volume with the guest's program. Its name begins with the program's
// digest, so that each version of the program has its own, and ends at random: several
// agents may make one at the same time, and none writes to what another has made, because
// containers may be about to run it.
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

// fill finds a volume with the program, or makes one.
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
	version := guestVersion(program)
	name, err := g.find(ctx, e, image, version)
	if err != nil {
		return "", err
	}
	if name == "" {
		name = version + "-" + strings.ToLower(rand.Text())
		if err := withVolume(ctx, e, image, name, func(id string) error { return copyProgram(ctx, e, id, program) }); err != nil {
			// Nobody else knows the name.
			_, _ = e.api.VolumeRemove(context.WithoutCancel(ctx), name, client.VolumeRemoveOptions{})
			return "", err
		}
	}
	g.name = name
	g.removeOthers(ctx, e, version)
	return name, nil
}

// find returns the name of a volume to which the program was copied whole, if there is one.
func (*guestVolume) find(ctx context.Context, e *Engine, image, version string) (string, error) {
	found, err := e.volumes(ctx, version)
	if err != nil {
		return "", err
	}
	for _, one := range found {
		err := withVolume(ctx, e, image, one.Name, func(id string) error {
			_, err := e.api.ContainerStatPath(ctx, id, client.ContainerStatPathOptions{Path: guestFolder + "/" + guestMark})
			return err
		})
		switch {
		case err == nil:
			return one.Name, nil
		case !errdefs.IsNotFound(err):
			return "", err
		}
	}
	return "", nil
}

// withVolume lets a container that is never started reach a volume, which is made if it is
// not there.
func withVolume(ctx context.Context, e *Engine, image, name string, use func(container string) error) error {
	made, err := e.api.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config:     &container.Config{Image: image, Entrypoint: []string{"none"}},
		HostConfig: &container.HostConfig{NetworkMode: "none", Mounts: []mount.Mount{guestMount(name, false)}},
	})
	if err != nil {
		return failed(err, "the guest's volume cannot be made")
	}
	err = use(made.ID)
	return errors.Join(err, e.remove(context.WithoutCancel(ctx), made.ID))
}

// guestMount mounts the volume. What the image has in that folder must not get into it: the volume
// is for sandboxes of all images.
func guestMount(name string, readOnly bool) mount.Mount {
	return mount.Mount{Type: mount.TypeVolume, Source: name, Target: guestFolder, ReadOnly: readOnly, VolumeOptions: &mount.VolumeOptions{NoCopy: true}}
}

// volumes lists the volumes whose names begin with a prefix.
func (e *Engine) volumes(ctx context.Context, prefix string) ([]volume.Volume, error) {
	found, err := e.api.VolumeList(ctx, client.VolumeListOptions{Filters: client.Filters{}.Add("name", prefix)})
	if err != nil {
		return nil, failed(err, "the volumes cannot be listed")
	}
	// The engine finds names that have it anywhere.
	return slices.DeleteFunc(found.Items, func(v volume.Volume) bool { return !strings.HasPrefix(v.Name, prefix) }), nil
}

// isThere reports whether the volume is still there. Another version of the
// program, or a person, may have taken it for an old one.
func (g *guestVolume) isThere(ctx context.Context, e *Engine) bool {
	_, err := e.api.VolumeInspect(ctx, g.name, client.VolumeInspectOptions{})
	return !errdefs.IsNotFound(err) // another error will show when it is used
}

// sweep removes volumes of other versions than this program's.
func (g *guestVolume) sweep(ctx context.Context, e *Engine) error {
	program, err := os.ReadFile(e.config.Guest)
	if err != nil {
		return fmt.Errorf("read the guest's program: %w", err)
	}
	g.removeOthers(ctx, e, guestVersion(program))
	return nil
}

// guestVersion begins the names of the volumes with the program.
func guestVersion(program []byte) string {
	digest := sha256.Sum256(program)
	return guestPrefix + hex.EncodeToString(digest[:8])
}

// oldAfter is for how long the volume of another version is left alone. That
// version may be running, and between two sandboxes.
const oldAfter = 24 * time.Hour

// removeOthers removes volumes of other versions. The engine refuses those that a container
// uses. That one stays is no harm, and is not told to anybody but the log.
func (g *guestVolume) removeOthers(ctx context.Context, e *Engine, version string) {
	found, err := e.volumes(ctx, guestPrefix)
	if err != nil {
		e.config.Log.DebugContext(ctx, "docker: failed to list volumes", "error", err)
		return
	}
	for _, one := range found {
		made, err := time.Parse(time.RFC3339, one.CreatedAt)
		if err != nil || strings.HasPrefix(one.Name, version) || e.config.Now().Sub(made) < oldAfter {
			continue
		}
		_, err = e.api.VolumeRemove(ctx, one.Name, client.VolumeRemoveOptions{})
		e.config.Log.DebugContext(ctx, "docker: removed the guest volume of another version", "volume", one.Name, "error", err)
	}
}

// copyProgram copies the guest's program to the volume of a container.
func copyProgram(ctx context.Context, e *Engine, id string, program []byte) error {
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
