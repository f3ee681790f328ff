package harbor

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/eval/source"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Runner runs task folders.
type Runner struct {
	Engine sandbox.Containers
	Owner  string // of the containers
	// Network lets images be built, and tasks that ask for it be tested, with the network of
	// the engine.
	Network bool
	Limits  sandbox.Limits
	// TestTimeout and WorkTimeout are the most that tests and solutions may take, whatever
	// their tasks say.
	TestTimeout time.Duration
	WorkTimeout time.Duration
}

// imageName is the name of images that are built. The tag is the hash of the files, so that the
// same files are built once.
const imageName = "toryo-eval"

// Where things are in a container. What the names of this program have is gone before the tests
// begin.
const (
	testsPath    = "/tests"
	solutionPath = "/solution"
	logsPath     = "/logs"
	rewardPath   = logsPath + "/verifier"
	startPath    = "/toryo-start.sh"
	stagePath    = "/toryo-work"
	packedPath   = "/toryo-tests" // the tests until the work is in its place
)

// Prepare makes a task ready: its image is there, and the files in the image's working directory
// are a repository in a new folder.
func (r Runner) Prepare(ctx context.Context, t taskset.Task, dir string) (taskset.Task, error) {
	c := *t.Container
	if err := r.fits(c); err != nil {
		return t, err
	}
	image, err := r.image(ctx, c)
	if err != nil {
		return t, err
	}
	if len(image.Volumes) > 0 {
		return t, task.Errorf(task.Unsupported, "its image has a VOLUME at %s, to which the limit of the disk does not apply", image.Volumes[0])
	}
	c.Image = image.Digest
	if c.Workdir == "" {
		c.Workdir = path.Clean("/" + image.Folder)
	}
	if !isUsable(c.Workdir) {
		return t, task.Errorf(task.Unsupported, "the working directory of its image is %s, which holds other things than files of the work", c.Workdir)
	}
	var made *source.Repository
	_, err = r.Engine.Once(ctx, sandbox.Once{Owner: r.Owner, Image: c.Image, Folder: "/", Limits: r.limits(c), Read: func(ctx context.Context, files sandbox.Files) error {
		archive, err := files.Archive(ctx, c.Workdir+"/.")
		if err != nil {
			return err
		}
		defer func() { _ = archive.Close() }() // it was only read
		made, err = source.FromArchive(ctx, archive, dir)
		return err
	}})
	if err != nil {
		return t, task.Wrap(task.CodeOf(err), err, "the files of the working directory "+c.Workdir+" cannot be taken over")
	}
	t.Container, t.Repository, t.Base = &c, made.Dir, made.Base
	t.Statement = strings.TrimRight(t.Statement, "\n") + "\n\n" + fmt.Sprintf(place, c.Workdir)
	return t, nil
}

// place tells the model what counts.
const place = "The repository has the files of the folder %s of the machine on which the result is tested. " +
	"Only files in that folder count: what is changed, installed or started elsewhere is not there when the result is tested.\n"

// fits refuses a task that needs more than the configuration gives.
func (r Runner) fits(c taskset.Container) error {
	limits := r.Limits.OrDefaults()
	for _, one := range []struct {
		what, key    string
		needs, gives int64
	}{{"memory", "sandbox.memory", c.Memory, limits.Memory}, {"disk", "sandbox.disk", c.Disk, limits.Disk}} {
		if one.needs > one.gives {
			return task.Errorf(task.Unsupported, "it needs %d MB of %s, and %s is %d MB", one.needs>>20, one.what, one.key, one.gives>>20).WithHint("raise %s", one.key)
		}
	}
	if c.Memory > 0 && c.Memory < leastMemory || c.CPUs > 0 && c.CPUs < leastCPUs {
		return task.Errorf(task.Unsupported, "it asks for %d bytes of memory and %v processors, and the engine gives no container less than %d and %v", c.Memory, c.CPUs, leastMemory, leastCPUs)
	}
	return nil
}

// The engine gives no container less.
const (
	leastMemory = 6 << 20
	leastCPUs   = 0.01
)

// limits are those of the configuration, or what the task needs if that is less.
func (r Runner) limits(c taskset.Container) sandbox.Limits {
	limits := r.Limits.OrDefaults()
	if c.CPUs > 0 {
		limits.CPUs = min(limits.CPUs, c.CPUs)
	}
	if c.Memory > 0 {
		limits.Memory = c.Memory
	}
	if c.Disk > 0 {
		limits.Disk = c.Disk
	}
	return limits
}

// image is the image of a task: the one that is named if it is there, else one that is built.
func (r Runner) image(ctx context.Context, c taskset.Container) (sandbox.Image, error) {
	if c.Image != "" {
		found, err := r.Engine.Image(ctx, c.Image)
		if err == nil || task.CodeOf(err) != task.NotFound {
			return found, err
		}
		if !c.Dockerfile {
			return found, task.Errorf(task.NotFound, "the image %s is not there", c.Image).WithHint("get it with: docker pull %s", c.Image)
		}
	}
	var bases []sandbox.Base
	if !r.Network {
		var err error
		if bases, err = basesOf(c); err != nil {
			return sandbox.Image{}, err
		}
	}
	hash, err := taskset.HashOf(c.Folder, taskset.FolderEnvironment)
	if err != nil {
		return sandbox.Image{}, err
	}
	const tag = 32 // characters of the hash
	name := imageName + ":" + hash[:tag]
	_, err = r.Engine.Build(ctx, sandbox.Build{Name: name, Network: r.Network, Bases: bases, Limits: r.limits(c), Timeout: min(c.BuildTimeout, r.WorkTimeout),
		Files: func(to *tar.Writer) error { return taskset.Archive(c.Folder, taskset.FolderEnvironment, "", to) }})
	if err != nil {
		if !r.Network {
			err = task.Wrap(task.CodeOf(err), err, "its image is built without network, which --allow-network would give")
		}
		return sandbox.Image{}, err
	}
	return r.Engine.Image(ctx, name)
}

// isUsable reports whether a folder can be the place of the work: over others the workspace cannot
// be put, or tests and rewards would be files of the work.
func isUsable(folder string) bool {
	if slices.Contains([]string{"/", "/usr", "/usr/lib", "/usr/lib64", "/usr/local", "/usr/local/bin", "/var", "/home", "/tmp", "/run", sandbox.HomePath, "/opt"}, folder) {
		return false
	}
	for _, other := range []string{testsPath, solutionPath, logsPath, stagePath, startPath, packedPath, "/.toryo", "/proc", "/sys", "/dev", "/etc", "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/lib", "/lib64", "/boot"} {
		if folder == other || strings.HasPrefix(folder, other+"/") {
			return false
		}
	}
	// The workspace cannot be put into itself, and below /root only root gets to a file.
	if strings.HasPrefix(folder, sandbox.WorkspacePath+"/") || strings.HasPrefix(folder, "/root/") {
		return false
	}
	return path.IsAbs(folder) && path.Clean(folder) == folder
}

// Solve runs the solution of a task and makes a commit of what it leaves in the working directory.
func (r Runner) Solve(ctx context.Context, t taskset.Task, from *source.Repository) (commit string, err error) {
	c := *t.Container
	ended, err := r.Engine.Once(ctx, sandbox.Once{
		Owner: r.Owner, Image: c.Image, Folder: c.Workdir, Program: []string{"/bin/sh", startPath}, Env: both(c.Env, c.SolutionEnv),
		Network: r.Network && c.Network, Limits: r.limits(c), Timeout: min(c.WorkTimeout, r.WorkTimeout),
		Files: func(to *tar.Writer) error {
			if err := startWith(to, solving(c.Workdir)); err != nil {
				return err
			}
			return folderTo(to, c.Folder, taskset.FolderSolution, solutionPath)
		},
		Read: func(ctx context.Context, files sandbox.Files) error {
			archive, err := files.Archive(ctx, c.Workdir+"/.")
			if err != nil {
				return err
			}
			defer func() { _ = archive.Close() }() // it was only read
			commit, err = from.Import(ctx, archive, from.Base)
			return err
		},
	})
	if err != nil {
		return "", err
	}
	if ended.Exceeded != sandbox.NoLimit {
		return "", task.Errorf(task.Invalid, "the solution exceeded the limit of %s: %s", ended.Exceeded, lastOf(ended.Output))
	}
	return commit, nil
}

// Result is what the tests of a task have said.
type Result struct {
	Reward  float64
	Problem string // why there is no reward; empty if there is
	Output  string // the end of what the tests printed
	Seconds float64
}

// Score applies a commit to a fresh container of the image and runs the tests in it. An error may
// be one of the machine, or one that programs of the commit have made.
func (r Runner) Score(ctx context.Context, t taskset.Task, from *source.Repository, commit string) (result Result, err error) {
	c := *t.Container
	changes, err := from.Changes(ctx, from.Base, commit)
	if err != nil {
		return Result{}, err
	}
	sizes, all, err := sizesOf(ctx, from, changes)
	if err != nil {
		return Result{}, err
	}
	limits := r.limits(c)
	if all > limits.Disk { // which the engine does not look at while it copies files
		return Result{Problem: fmt.Sprintf("the files of the work have more bytes than the %d of the disk", limits.Disk)}, nil
	}
	var read rewards
	ended, err := r.Engine.Once(ctx, sandbox.Once{
		Owner: r.Owner, Image: c.Image, Folder: c.Workdir, Program: []string{"/bin/sh", startPath}, Env: both(c.Env, c.TestEnv),
		Network: r.Network && c.Network, Limits: limits, Timeout: min(c.TestTimeout, r.TestTimeout),
		Files: func(to *tar.Writer) error {
			if err := startWith(to, scoring(c.Workdir, changes)); err != nil {
				return err
			}
			if err := stage(ctx, to, from, changes, sizes); err != nil {
				return err
			}
			return folderTo(to, c.Folder, taskset.FolderTests, packedPath)
		},
		Read: func(ctx context.Context, files sandbox.Files) (err error) {
			read, err = readRewards(ctx, files)
			return err
		},
	})
	if err != nil {
		return Result{}, err
	}
	result = Result{Output: string(ended.Output), Seconds: ended.Duration.Seconds()}
	if ended.Exceeded != sandbox.NoLimit {
		result.Problem = fmt.Sprintf("the tests exceeded the limit of %s", ended.Exceeded)
		return result, nil
	}
	result.Reward, result.Problem = read.reward()
	return result, nil
}

// The modes of git that matter here.
const (
	modeProgram = "100755"
	modeLink    = "120000"
)

// sizesOf are the lengths of what is there after the changes, and of all of it together.
func sizesOf(ctx context.Context, from *source.Repository, changes []source.Change) (sizes map[string]int64, all int64, err error) {
	var hashes []string
	for _, change := range changes {
		if !change.IsGone() {
			hashes = append(hashes, change.Hash)
		}
	}
	if len(hashes) == 0 {
		return nil, 0, nil
	}
	if sizes, err = from.Sizes(ctx, hashes); err != nil {
		return nil, 0, err
	}
	for _, hash := range hashes {
		all += sizes[hash]
	}
	return sizes, all, nil
}

// maxLink is how long the target of a link may be: no system has longer ones.
const maxLink = 4096

// stage writes the files of the work, each under its number.
func stage(ctx context.Context, to *tar.Writer, from *source.Repository, changes []source.Change, sizes map[string]int64) error {
	if err := to.WriteHeader(&tar.Header{Name: strings.TrimPrefix(stagePath, "/") + "/", Typeflag: tar.TypeDir, Mode: 0o755}); err != nil {
		return err
	}
	for i, change := range changes {
		if change.IsGone() {
			continue
		}
		header := &tar.Header{Name: fmt.Sprintf("%s/%d", strings.TrimPrefix(stagePath, "/"), i), Typeflag: tar.TypeReg, Mode: 0o644, Size: sizes[change.Hash], Format: tar.FormatPAX}
		if err := stageOne(ctx, to, from, change, header); err != nil {
			return err
		}
	}
	return nil
}

// stageOne writes one file of the work.
func stageOne(ctx context.Context, to *tar.Writer, from *source.Repository, change source.Change, header *tar.Header) error {
	if change.Mode == modeLink {
		if header.Size > maxLink {
			return task.Errorf(task.Invalid, "the link %q is too long", change.Name)
		}
		var target strings.Builder
		if err := from.Copy(ctx, change.Hash, &target); err != nil {
			return err
		}
		header.Typeflag, header.Linkname, header.Size = tar.TypeSymlink, target.String(), 0
		return to.WriteHeader(header)
	}
	if change.Mode == modeProgram {
		header.Mode = 0o755
	}
	if err := to.WriteHeader(header); err != nil {
		return err
	}
	return from.Copy(ctx, change.Hash, to)
}

// startWith writes the script that a container starts with.
func startWith(to *tar.Writer, script string) error {
	if err := to.WriteHeader(&tar.Header{Name: strings.TrimPrefix(startPath, "/"), Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(script))}); err != nil {
		return err
	}
	_, err := io.WriteString(to, script)
	return err
}

// folderTo writes a folder of a task folder to its place in the container.
func folderTo(to *tar.Writer, taskFolder, folder, at string) error {
	at = strings.TrimPrefix(at, "/")
	if err := to.WriteHeader(&tar.Header{Name: at + "/", Typeflag: tar.TypeDir, Mode: 0o755}); err != nil {
		return err
	}
	return taskset.Archive(filepath.Clean(taskFolder), folder, at, to)
}

func both(one, other map[string]string) map[string]string {
	all := maps.Clone(one)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, other)
	return all
}

// lastOf is the end of an output, for an error.
func lastOf(output []byte) string {
	const most = 300
	text := textfmt.OneLine(textfmt.Plain(string(output)))
	return strings.ToValidUTF8(text[max(len(text)-most, 0):], "")
}
