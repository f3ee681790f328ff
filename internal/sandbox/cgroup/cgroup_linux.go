package cgroup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrNone says that no control group can be made here.
var ErrNone = errors.New("there are no control groups that this program may use")

// Limits are those of one group. All have to be set.
type Limits struct {
	Memory  int64 // bytes, of everything that counts as memory of the group
	Threads int64
	CPUs    float64
}

// System is the control groups of a machine. The zero value is those of this one.
type System struct {
	// Root is before every path, for tests.
	Root string
	// LookOnly has nothing changed: it is only said what would be used.
	LookOnly bool

	mutex sync.Mutex
	found *place
	err   error
}

// place is where groups can be made.
type place struct {
	version int
	folders map[string]string // of each controller; in version 2 they are all one
}

// The controllers. Memory has to be there; the others are used where they are.
const (
	memory = "memory"
	pids   = "pids"
	cpu    = "cpu"
)

var controllers = []string{memory, pids, cpu}

// Version says which version of control groups is used, 1 or 2. It is 0 with the
// reason where there is none.
func (s *System) Version() (int, error) {
	at, err := s.place()
	if err != nil {
		return 0, err
	}
	return at.version, nil
}

// place finds where groups can be made, by making one.
func (s *System) place() (*place, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.found == nil && s.err == nil {
		s.found, s.err = s.find()
	}
	return s.found, s.err
}

func (s *System) find() (*place, error) {
	own, err := s.ownGroups()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	mounts, err := s.mounts()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	var failures []error
	for _, look := range []func(own, mounts map[string]string) (*place, error){s.findSecond, s.findFirst} {
		found, err := look(own, mounts)
		if err == nil {
			err = found.try()
		}
		if err == nil {
			return found, nil
		}
		failures = append(failures, err)
	}
	return nil, fmt.Errorf("%w: %w", ErrNone, errors.Join(failures...))
}

// try makes a group and removes it.
func (p *place) try() error {
	name := fmt.Sprintf("toryo-try-%d", os.Getpid())
	for _, folder := range p.all() {
		dir := filepath.Join(folder, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // the kernel sets the mode
			return err
		}
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err != nil {
			return errors.Join(err, os.Remove(dir))
		}
		if err := os.Remove(dir); err != nil {
			return err
		}
	}
	return nil
}

// all are the different folders of the controllers.
func (p *place) all() []string {
	var folders []string
	for _, controller := range controllers {
		if folder := p.folders[controller]; folder != "" && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// secondName is the name of the second version among the controllers.
const secondName = ""

// rootOr is where paths begin.
func (s *System) rootOr() string {
	if s.Root == "" {
		return "/"
	}
	return s.Root
}

// ownGroups is the group of this process for each controller.
func (s *System) ownGroups() (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(s.rootOr(), "proc", "self", "cgroup"))
	if err != nil {
		return nil, err
	}
	groups := map[string]string{}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for name := range strings.SplitSeq(parts[1], ",") {
			groups[name] = parts[2]
		}
	}
	return groups, nil
}

// mounts is where each controller is mounted, and what of it.
func (s *System) mounts() (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(s.rootOr(), "proc", "self", "mountinfo"))
	if err != nil {
		return nil, err
	}
	mounts := map[string]string{}
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(strings.TrimSpace(line), " - ")
		about, system := strings.Fields(before), strings.Fields(after)
		if len(about) < 5 || len(system) < 3 {
			continue
		}
		switch system[0] {
		case "cgroup2":
			mounts[secondName] = about[4]
		case "cgroup":
			for option := range strings.SplitSeq(system[2], ",") {
				if slices.Contains(controllers, option) {
					mounts[option] = about[4]
				}
			}
		}
	}
	return mounts, nil
}

// folderOf is the folder of this process's group. In a container the group may have
// another name outside; then what is mounted is that of the container.
func (s *System) folderOf(mount, own string) string {
	dir := filepath.Join(s.rootOr(), mount, own)
	if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
		return dir
	}
	return filepath.Join(s.rootOr(), mount)
}

func (s *System) findFirst(own, mounts map[string]string) (*place, error) {
	if mounts[memory] == "" {
		return nil, errors.New("version 1 has no memory controller here")
	}
	if s.Root == "" && os.Geteuid() != 0 {
		return nil, errors.New("groups of version 1 can be entered by root only")
	}
	found := &place{version: 1, folders: map[string]string{}}
	for _, controller := range controllers {
		if mount := mounts[controller]; mount != "" {
			found.folders[controller] = s.folderOf(mount, own[controller])
		}
	}
	return found, nil
}

// findSecond makes the controllers of version 2 reach groups below this process's
// own. A group with processes in it cannot have groups below that have limits, so
// this process and those beside it move into one of their own.
func (s *System) findSecond(own, mounts map[string]string) (*place, error) {
	if mounts[secondName] == "" {
		return nil, errors.New("version 2 is not mounted here")
	}
	dir := s.folderOf(mounts[secondName], own[secondName])
	if os.Geteuid() == 0 && !delegated(dir) {
		dir = filepath.Join(s.rootOr(), mounts[secondName]) // as container engines do; the group is its manager's
	}
	there, err := fieldsOf(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return nil, err
	}
	if !slices.Contains(there, memory) {
		return nil, errors.New("version 2 has no memory controller for this program")
	}
	found := &place{version: 2, folders: map[string]string{}}
	var enable []string
	for _, controller := range controllers {
		if slices.Contains(there, controller) {
			found.folders[controller] = dir
			enable = append(enable, "+"+controller)
		}
	}
	control := filepath.Join(dir, "cgroup.subtree_control")
	enabled, err := fieldsOf(control)
	if err != nil {
		return nil, err
	}
	missing := slices.ContainsFunc(enable, func(name string) bool { return !slices.Contains(enabled, name[1:]) })
	if missing && s.LookOnly {
		if err := syscall.Access(control, writable); err != nil {
			return nil, fmt.Errorf("version 2 is not delegated to this program: %w", err)
		}
	} else if missing {
		err := set(control, strings.Join(enable, " "))
		if errors.Is(err, syscall.EBUSY) {
			err = errors.Join(moveDown(dir, own[secondName] == "/"), set(control, strings.Join(enable, " ")))
		}
		if err != nil {
			return nil, fmt.Errorf("version 2 is not delegated to this program: %w", err)
		}
	}
	return found, nil
}

// delegated reports whether systemd leaves what is below a group to its processes.
func delegated(dir string) bool {
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		var value [8]byte
		if n, err := syscall.Getxattr(dir, name, value[:]); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// ownName is the group that this program moves into.
const ownName = "toryo-self"

// writable is what access(2) calls it.
const writable = 2

// moveDown moves this process into a group below its own. In a container all go
// with it; elsewhere the others are not ours to move.
func moveDown(dir string, all bool) error {
	below := filepath.Join(dir, ownName)
	if err := os.Mkdir(below, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // the kernel sets the mode
		return err
	}
	if !all {
		return set(filepath.Join(below, "cgroup.procs"), "0")
	}
	for range 10 { // others may start meanwhile
		processes, err := fieldsOf(filepath.Join(dir, "cgroup.procs"))
		if err != nil || len(processes) == 0 {
			return err
		}
		for _, process := range processes {
			if err := set(filepath.Join(below, "cgroup.procs"), process); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
	}
	return nil
}

func fieldsOf(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	return strings.Fields(string(text)), err
}

func set(file, value string) error {
	opened, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = opened.WriteString(value)
	return errors.Join(err, opened.Close())
}

// Group is the control group of one sandbox.
type Group struct {
	at   *place
	name string
}

// Make makes a group. [ErrNone] says that there are none here.
func (s *System) Make(name string, limits Limits) (*Group, error) {
	at, err := s.place()
	if err != nil {
		return nil, err
	}
	group := &Group{at: at, name: name}
	for _, folder := range group.folders() {
		if err := os.Mkdir(folder, 0o755); err != nil { //nolint:gosec // the kernel sets the mode
			return nil, errors.Join(fmt.Errorf("make a control group: %w", err), group.Remove())
		}
	}
	if err := group.limit(limits); err != nil {
		return nil, errors.Join(fmt.Errorf("set the limits of a control group: %w", err), group.Remove())
	}
	return group, nil
}

// Find is a group by its name, whether it is there or not; nil where there are none.
func (s *System) Find(name string) *Group {
	at, err := s.place()
	if err != nil {
		return nil
	}
	return &Group{at: at, name: name}
}

func (g *Group) folders() []string {
	folders := g.at.all()
	for i := range folders {
		folders[i] = filepath.Join(folders[i], g.name)
	}
	return folders
}

// file is a file of a controller, or nothing where that is not to be had.
func (g *Group) file(controller, name string) string {
	if g.at.folders[controller] == "" {
		return ""
	}
	return filepath.Join(g.at.folders[controller], g.name, name)
}

// period is the time in which the processor time is given out, in microseconds.
const period = 100_000

func (g *Group) limit(limits Limits) error {
	most, quota := strconv.FormatInt(limits.Memory, 10), strconv.FormatInt(int64(limits.CPUs*period), 10)
	settings := []struct {
		controller, name, value string
		optional                bool // some kernels are built without
	}{
		{memory, "memory.limit_in_bytes", most, false},
		{memory, "memory.memsw.limit_in_bytes", most, true},
		{pids, "pids.max", strconv.FormatInt(limits.Threads, 10), false},
		{cpu, "cpu.cfs_quota_us", quota, true},
	}
	if g.at.version == 2 {
		settings[0].name = "memory.max"
		settings[1].name, settings[1].value = "memory.swap.max", "0"
		settings[3].name, settings[3].value = "cpu.max", quota+" "+strconv.Itoa(period)
	}
	for _, setting := range settings {
		file := g.file(setting.controller, setting.name)
		if file == "" {
			continue
		}
		if err := set(file, setting.value); err != nil && !setting.optional {
			return err
		}
	}
	return nil
}

// Entrances are the files to which a process writes 0 to be in the group, with all
// that it starts.
func (g *Group) Entrances() []string {
	files := g.folders()
	for i := range files {
		files[i] = filepath.Join(files[i], "cgroup.procs")
	}
	return files
}

// Join has a process start in the group, which only the second version can do for
// one that is not the superuser's. Close what it returns when the process has
// started.
func (g *Group) Join(command *exec.Cmd) (io.Closer, error) {
	if g.at.version != 2 {
		return io.NopCloser(nil), nil // its launcher enters it
	}
	opened, err := os.Open(g.folders()[0])
	if err != nil {
		return nil, err
	}
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.UseCgroupFD, command.SysProcAttr.CgroupFD = true, int(opened.Fd())
	return opened, nil
}

// Kills is how many processes of the group the kernel has killed because the group
// took too much memory.
func (g *Group) Kills() int {
	name := "memory.oom_control"
	if g.at.version == 2 {
		name = "memory.events"
	}
	text, err := os.ReadFile(g.file(memory, name))
	if err != nil {
		return 0 // the group is gone
	}
	for line := range strings.Lines(string(text)) {
		if count, is := strings.CutPrefix(line, "oom_kill "); is {
			number, _ := strconv.Atoi(strings.TrimSpace(count)) // the kernel's
			return number
		}
	}
	return 0
}

// removeTime is how long processes may take to end that were killed.
const removeTime = 10 * time.Second

// Remove kills what is in the group and removes it. One that is not there is not an
// error.
func (g *Group) Remove() error {
	var failures []error
	for _, folder := range g.folders() {
		if err := removeFolder(folder); err != nil {
			failures = append(failures, fmt.Errorf("remove the control group %s: %w", folder, err))
		}
	}
	return errors.Join(failures...)
}

func removeFolder(folder string) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for begun := time.Now(); ; <-ticker.C {
		err := os.Remove(folder)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if time.Since(begun) > removeTime {
			return err
		}
		processes, _ := fieldsOf(filepath.Join(folder, "cgroup.procs")) // an error shows in the next removal
		for _, process := range processes {
			if pid, err := strconv.Atoi(process); err == nil && pid > 1 {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone by now
			}
		}
	}
}
