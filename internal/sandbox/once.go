package sandbox

import (
	"archive/tar"
	"context"
	"io"
	"time"
)

// Containers is an engine that can also build images, and run one program in a container that
// is no sandbox: its user is root, and it ends with the program. Nothing of the host is in it.
type Containers interface {
	// Build makes an image and returns its digest. If there is one of that name, it is used.
	// It fails with Invalid if the engine cannot build what it is given.
	Build(ctx context.Context, build Build) (digest string, err error)
	// Image looks at an image that the engine has. NotFound means that it has none.
	Image(ctx context.Context, name string) (Image, error)
	// Once makes a container, runs its program to the end and removes the container.
	Once(ctx context.Context, once Once) (Ended, error)
}

// Build is an image that is to be built.
type Build struct {
	Name string
	// Files writes the folder with the Dockerfile.
	Files   func(to *tar.Writer) error
	Network bool // commands of the Dockerfile reach the engine's network
	// Bases are the images that the Dockerfile begins from. Without network they are looked at
	// first, and refused if instructions of their own would be done in the build.
	Bases   []Base
	Limits  Limits
	Timeout time.Duration
}

// Base is an image that a Dockerfile begins from.
type Base struct {
	Name     string
	Platform string // that it is to have; empty for that of the engine
}

// Image is what an engine says of an image.
type Image struct {
	Digest  string
	Folder  string   // in which its programs start; may be empty
	Volumes []string // folders that are in no limit of the disk
}

// Once is a program that is run in a container of its own. Nothing is written to its standard input,
// which ends when whoever has started it is gone.
type Once struct {
	Owner   string // who may reap it
	Image   string
	Folder  string // in which the program starts
	Program []string
	Env     map[string]string
	// Files writes files for the container, by their names from its root on; may be nil.
	Files   func(to *tar.Writer) error
	Network bool // the engine's own network, and not only loopback
	Limits  Limits
	Timeout time.Duration
	// Read is called when the program has ended, and no process is left. It may be nil.
	// Without a program it is called at once.
	Read func(ctx context.Context, files Files) error
}

// Files are the files of a container that has ended.
type Files interface {
	// Archive is what is at a path, as a tar archive. NotFound means that nothing is there.
	Archive(ctx context.Context, path string) (io.ReadCloser, error)
}

// Ended is how a program ended that was run once.
type Ended struct {
	ExitCode int
	Output   []byte // the end of it
	Exceeded Limit  // the limit that it was killed for
	Duration time.Duration
}

// ScoreTask marks containers of Once. The generation of such a container is the second of Unix
// time at which it has to be over: one that runs longer was left by a program that was killed.
const ScoreTask = "once"
