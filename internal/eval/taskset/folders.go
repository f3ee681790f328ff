package taskset

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// Container is how a task folder, as Harbor and Terminal-Bench have them, is run and scored.
type Container struct {
	Folder string `json:"-"`
	Hash   string `json:"hash"` // of all of its files
	// Image is the name of an image, which is used if it is there. Else it is built, if there
	// is a Dockerfile. Workdir is the
	// folder in it with the files of the work; empty for the one that the image names.
	Image      string `json:"image,omitempty"`
	Dockerfile bool   `json:"-"`
	Workdir    string `json:"workdir,omitempty"`
	// Env is for all programs, the others for the tests and the solution alone.
	Env         map[string]string `json:"env,omitempty"`
	TestEnv     map[string]string `json:"test_env,omitempty"`
	SolutionEnv map[string]string `json:"solution_env,omitempty"`
	// The limits in time, and what the tests need.
	BuildTimeout time.Duration `json:"build_timeout"`
	WorkTimeout  time.Duration `json:"work_timeout"`
	TestTimeout  time.Duration `json:"test_timeout"`
	CPUs         float64       `json:"cpus,omitempty"`
	Memory       int64         `json:"memory,omitempty"`
	Disk         int64         `json:"disk,omitempty"`
	Network      bool          `json:"network,omitempty"` // the task would have the internet reached
}

// The names in a task folder.
const (
	folderSettings    = "task.toml"
	folderInstruction = "instruction.md"
	// FolderEnvironment has the Dockerfile and what it copies.
	FolderEnvironment = "environment"
	// FolderTests has test.sh, and FolderSolution solve.sh.
	FolderTests    = "tests"
	FolderSolution = "solution"
	// TestScript and SolutionScript are what is run of them.
	TestScript     = "test.sh"
	SolutionScript = "solve.sh"
	dockerfile     = "Dockerfile"
)

// The limits of a task folder.
const (
	maxSettings    = 1 << 20
	maxFolder      = 1 << 30 // bytes of all files
	maxFolderFiles = 20_000
	maxVariable    = 32 << 10
	megabyte       = 1 << 20
	// longestTimeout is the longest limit in time that is believed.
	longestTimeout = 7 * 24 * time.Hour
	defaultTimeout = 10 * time.Minute
)

// settings are what is read of task.toml. Others are for people, or for other programs.
type settings struct {
	Steps    []any `toml:"steps"`
	Verifier struct {
		Timeout     float64           `toml:"timeout_sec"`
		Env         map[string]string `toml:"env"`
		User        any               `toml:"user"`
		Mode        string            `toml:"environment_mode"`
		NetworkMode string            `toml:"network_mode"`
		Collect     []any             `toml:"collect"`
	} `toml:"verifier"`
	Agent struct {
		Timeout float64 `toml:"timeout_sec"`
	} `toml:"agent"`
	Solution struct {
		Env map[string]string `toml:"env"`
	} `toml:"solution"`
	Environment struct {
		BuildTimeout  float64           `toml:"build_timeout_sec"`
		Image         string            `toml:"docker_image"`
		Workdir       string            `toml:"workdir"`
		CPUs          float64           `toml:"cpus"`
		MemoryMB      int64             `toml:"memory_mb"`
		Memory        string            `toml:"memory"` // as earlier versions had it
		StorageMB     int64             `toml:"storage_mb"`
		Storage       string            `toml:"storage"`
		GPUs          int               `toml:"gpus"`
		AllowInternet *bool             `toml:"allow_internet"`
		NetworkMode   string            `toml:"network_mode"`
		Env           map[string]string `toml:"env"`
		OS            string            `toml:"os"`
		Healthcheck   map[string]any    `toml:"healthcheck"`
		MCPServers    []any             `toml:"mcp_servers"`
	} `toml:"environment"`
}

// taskFolders are the task folders of a set: the folder itself, or those in it. It is empty if
// there are none.
func taskFolders(set string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(set, folderSettings)); err == nil {
		return []string{set}, nil
	}
	entries, err := os.ReadDir(set)
	if err != nil {
		return nil, task.Wrap(task.NotFound, err, "the task set cannot be read")
	}
	var found []string
	for _, entry := range entries {
		at := filepath.Join(set, entry.Name())
		if info, err := os.Stat(filepath.Join(at, folderSettings)); entry.IsDir() && err == nil && info.Mode().IsRegular() {
			found = append(found, at)
		}
	}
	if len(found) > MaxTasks {
		return nil, task.Errorf(task.TooLarge, "the set has more than %d tasks", MaxTasks)
	}
	return found, nil
}

// loadTaskFolders reads task folders. One that cannot be used is left out with the reason, unless
// it is the only one.
func loadTaskFolders(set string, folders []string) (Set, error) {
	made := Set{Name: filepath.Base(set)}
	sum := sha256.New()
	for _, folder := range folders {
		one, err := loadTaskFolder(folder)
		if err != nil {
			err = task.Wrap(task.CodeOf(err), err, "the task folder "+folder+" cannot be used")
			one = Task{ID: filepath.Base(folder), Missing: err.Error()}
			if len(folders) == 1 || !isID(one.ID) {
				return Set{}, err
			}
		}
		hash := "unusable"
		if one.Container != nil {
			hash = one.Container.Hash
		}
		_, _ = fmt.Fprintf(sum, "%s %s\n", one.ID, hash) // never fails
		made.Tasks = append(made.Tasks, one)
	}
	made.Hash = hex.EncodeToString(sum.Sum(nil))
	return made, nil
}

// loadTaskFolder reads one task folder.
func loadTaskFolder(folder string) (Task, error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return Task{}, task.Wrap(task.NotFound, err, "it cannot be read")
	}
	root, err := os.OpenRoot(absolute)
	if err != nil {
		return Task{}, task.Wrap(task.NotFound, err, "it cannot be read")
	}
	defer func() { _ = root.Close() }() // it was only read
	var s settings
	data, err := readIn(root, folderSettings, maxSettings)
	if err != nil {
		return Task{}, err
	}
	if err := toml.Unmarshal(data, &s); err != nil {
		return Task{}, task.Wrap(task.Invalid, err, folderSettings+" cannot be read")
	}
	instruction, err := readIn(root, folderInstruction, maxStatement)
	if err != nil {
		return Task{}, err
	}
	made := Task{ID: filepath.Base(absolute), Statement: string(instruction)}
	if made.Container, err = s.container(); err != nil {
		return Task{}, err
	}
	if err := made.Container.check(); err != nil {
		return Task{}, err
	}
	made.Container.Folder = absolute
	if made.Missing, err = made.Container.missingFiles(root); err != nil {
		return Task{}, err
	}
	if reason := s.unsupported(); reason != "" {
		made.Missing = reason
	}
	if made.Container.Hash, err = HashOf(absolute, "."); err != nil {
		return Task{}, err
	}
	return made, made.check()
}

// missingFiles refuses a folder without the files of every task, and says if those are
// missing without which this program can do nothing.
func (c *Container) missingFiles(root *os.Root) (missing string, err error) {
	has := func(name string) bool {
		info, err := root.Lstat(name)
		return err == nil && info.Mode().IsRegular()
	}
	c.Dockerfile = has(path.Join(FolderEnvironment, dockerfile))
	switch {
	case !has(path.Join(FolderTests, TestScript)):
		return "", task.Errorf(task.Invalid, "it has no file %s/%s", FolderTests, TestScript)
	case has(path.Join(FolderEnvironment, "docker-compose.yaml")) || has(path.Join(FolderEnvironment, "docker-compose.yml")):
		return "it needs several containers (docker-compose), which is not supported", nil
	case c.Image == "" && !c.Dockerfile:
		return "", task.Errorf(task.Invalid, "it has neither a file %s/%s nor a docker_image", FolderEnvironment, dockerfile)
	case !has(path.Join(FolderSolution, SolutionScript)):
		return "it has no " + FolderSolution + "/" + SolutionScript + ", so that it cannot be checked", nil
	}
	return "", nil
}

// unsupported says what a task needs that this program does not have.
func (s *settings) unsupported() string {
	modes := map[string]bool{"": true, "public": true, "no-network": true}
	user := fmt.Sprint(s.Verifier.User)
	for _, reason := range []struct {
		needed bool
		what   string
	}{
		{len(s.Steps) > 0, "it has several steps"},
		{s.Verifier.Mode == "separate" || len(s.Verifier.Collect) > 0, "its tests have a container of their own"},
		{s.Verifier.User != nil && user != "root" && user != "0" && user != "", "its tests have another user than root"},
		{s.Environment.GPUs > 0, "it needs a GPU"},
		{s.Environment.OS != "" && s.Environment.OS != "linux", "it is for another operating system"},
		{len(s.Environment.Healthcheck) > 0 || len(s.Environment.MCPServers) > 0, "it has services that have to run"},
		{!modes[s.Environment.NetworkMode] || !modes[s.Verifier.NetworkMode], "it reaches only some hosts of the network"},
		{s.asksVariables(), "it asks for variables of this machine"},
	} {
		if reason.needed {
			return reason.what + ", which is not supported"
		}
	}
	return ""
}

// asksVariables reports whether values of variables are to be those of this machine.
func (s *settings) asksVariables() bool {
	for _, variables := range []map[string]string{s.Environment.Env, s.Verifier.Env, s.Solution.Env} {
		for _, value := range variables {
			if strings.Contains(value, "${") {
				return true
			}
		}
	}
	return false
}

var (
	// imageForm is a name of an image that no shell or log takes for something else.
	imageForm    = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}$`)
	sizeForm     = lazyregexp.New(`^(\d{1,6})([KMG])[iI]?[bB]?$`)
	variableForm = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,199}$`)
)

// container is what the settings say, with what is usual for what they do not say.
func (s *settings) container() (*Container, error) {
	e := s.Environment
	made := &Container{Image: e.Image, Workdir: e.Workdir, Env: e.Env, TestEnv: s.Verifier.Env, SolutionEnv: s.Solution.Env, CPUs: e.CPUs, Memory: e.MemoryMB * megabyte, Disk: e.StorageMB * megabyte,
		Network: e.AllowInternet == nil || *e.AllowInternet}
	for _, mode := range []string{e.NetworkMode, s.Verifier.NetworkMode} {
		if mode != "" {
			made.Network = mode != "no-network"
		}
	}
	var err error
	for _, size := range []struct {
		text string
		to   *int64
	}{{e.Memory, &made.Memory}, {e.Storage, &made.Disk}} {
		if size.text != "" && *size.to == 0 {
			if *size.to, err = sizeOf(size.text); err != nil {
				return nil, err
			}
		}
	}
	for _, limit := range []struct {
		seconds float64
		to      *time.Duration
	}{{e.BuildTimeout, &made.BuildTimeout}, {s.Agent.Timeout, &made.WorkTimeout}, {s.Verifier.Timeout, &made.TestTimeout}} {
		if *limit.to, err = timeoutOf(limit.seconds); err != nil {
			return nil, err
		}
	}
	if max(e.MemoryMB, e.StorageMB) > math.MaxInt32 {
		return nil, task.Errorf(task.Invalid, "memory_mb and storage_mb cannot be that large")
	}
	return made, nil
}

// check refuses values that nothing can have.
func (c *Container) check() error {
	switch {
	case c.Image != "" && !imageForm.MatchString(c.Image):
		return task.Errorf(task.Invalid, "docker_image is %q, which is no name of an image", clip(c.Image))
	case c.Workdir != "" && (!path.IsAbs(c.Workdir) || path.Clean(c.Workdir) != c.Workdir):
		return task.Errorf(task.Invalid, "workdir is %q, which is no absolute path", clip(c.Workdir))
	case c.CPUs < 0 || math.IsNaN(c.CPUs) || c.Memory < 0 || c.Disk < 0:
		return task.Errorf(task.Invalid, "cpus, memory_mb and storage_mb cannot be negative")
	}
	return c.checkVariables()
}

// checkVariables refuses variables that no program can have.
func (c *Container) checkVariables() error {
	for _, variables := range []map[string]string{c.Env, c.TestEnv, c.SolutionEnv} {
		for name, value := range variables {
			if !variableForm.MatchString(name) || len(value) > maxVariable || strings.ContainsRune(value, 0) {
				return task.Errorf(task.Invalid, "the variable %q is none that a program can have", clip(name))
			}
		}
	}
	return nil
}

func sizeOf(text string) (int64, error) {
	found := sizeForm.FindStringSubmatch(strings.ToUpper(strings.TrimSpace(text)))
	if found == nil {
		return 0, task.Errorf(task.Invalid, "%q is no size such as 2G", clip(text))
	}
	number, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		return 0, task.Wrap(task.Invalid, err, "a size cannot be read")
	}
	return number * map[string]int64{"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[found[2]], nil
}

func timeoutOf(seconds float64) (time.Duration, error) {
	if seconds < 0 || math.IsNaN(seconds) || seconds > longestTimeout.Seconds() {
		return 0, task.Errorf(task.Invalid, "a limit of %v seconds is none", seconds)
	}
	if seconds == 0 {
		return defaultTimeout, nil
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// readIn reads a file of a task folder, which must be no link.
func readIn(root *os.Root, name string, most int64) ([]byte, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, task.Wrap(task.Invalid, err, "it has no file "+name)
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, task.Errorf(task.Invalid, "%s is no file, or has more than %d bytes", name, most)
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, task.Wrap(task.Invalid, err, "it has no file "+name)
	}
	defer func() { _ = file.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return nil, task.Wrap(task.Invalid, err, name+" cannot be read")
	}
	return data, nil
}

// DockerfileOf reads the Dockerfile of a task folder.
func DockerfileOf(taskFolder string) (string, error) {
	root, err := os.OpenRoot(taskFolder)
	if err != nil {
		return "", task.Wrap(task.NotFound, err, "the task folder cannot be read")
	}
	defer func() { _ = root.Close() }() // it was only read
	data, err := readIn(root, path.Join(FolderEnvironment, dockerfile), maxSettings)
	return string(data), err
}

// HashOf identifies the files of a folder of a task folder.
func HashOf(taskFolder, folder string) (string, error) {
	sum := sha256.New()
	archive := tar.NewWriter(sum)
	if err := Archive(taskFolder, folder, "", archive); err != nil {
		return "", err
	}
	if err := archive.Close(); err != nil {
		return "", wrapped(err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Archive writes a folder of a task folder to an archive, below a name, in the order of names and
// without times and owners: the same files are the same archive. Links that lead out of the
// folder are refused, and so is what is neither file nor folder.
func Archive(taskFolder, folder, below string, to *tar.Writer) error {
	root, err := os.OpenRoot(filepath.Join(taskFolder, folder))
	if err != nil {
		return task.Wrap(task.Invalid, err, "there is no folder "+folder)
	}
	defer func() { _ = root.Close() }() // it was only read
	var size int64
	files := 0
	return fs.WalkDir(root.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return task.Wrap(task.Invalid, err, "the folder cannot be read")
		}
		if name == "." {
			return nil
		}
		info, err := root.Lstat(name)
		if err != nil {
			return task.Wrap(task.Invalid, err, "the folder cannot be read")
		}
		if files++; files > maxFolderFiles {
			return task.Errorf(task.TooLarge, "it has more than %d files", maxFolderFiles)
		}
		if size += info.Size(); size > maxFolder {
			return task.Errorf(task.TooLarge, "it has more than %d bytes", maxFolder)
		}
		return archive(root, name, path.Join(below, name), info, to)
	})
}

// archive writes one file of a folder.
func archive(root *os.Root, name, as string, info fs.FileInfo, to *tar.Writer) error {
	header := &tar.Header{Name: as, Mode: 0o644, Format: tar.FormatPAX}
	switch {
	case info.IsDir():
		header.Typeflag, header.Mode, header.Name = tar.TypeDir, 0o755, as+"/"
		return wrapped(to.WriteHeader(header))
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := root.Readlink(name)
		if err != nil {
			return task.Wrap(task.Invalid, err, "the link "+name+" cannot be read")
		}
		if path.IsAbs(target) || !filepath.IsLocal(path.Join(path.Dir(name), target)) {
			return task.Errorf(task.Invalid, "the link %s leads out of its folder", name)
		}
		header.Typeflag, header.Linkname = tar.TypeSymlink, target
		return wrapped(to.WriteHeader(header))
	case !info.Mode().IsRegular():
		return task.Errorf(task.Invalid, "%s is neither a file nor a folder", name)
	}
	if info.Mode()&0o111 != 0 {
		header.Mode = 0o755
	}
	file, err := root.Open(name)
	if err != nil {
		return task.Wrap(task.Invalid, err, name+" cannot be read")
	}
	defer func() { _ = file.Close() }() // it was only read
	header.Typeflag, header.Size = tar.TypeReg, info.Size()
	if err := to.WriteHeader(header); err != nil {
		return wrapped(err)
	}
	if _, err := io.CopyN(to, file, info.Size()); err != nil {
		return task.Wrap(task.Invalid, err, name+" cannot be read")
	}
	return nil
}

func wrapped(err error) error {
	if err == nil {
		return nil
	}
	return task.Wrap(task.Unavailable, err, "the archive cannot be written")
}
