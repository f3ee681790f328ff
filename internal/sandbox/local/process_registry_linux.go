package local

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// ProcessRegistry records the sandboxes that are processes of this machine, one folder each,
// so that another process can find and end what a dead one left.
type ProcessRegistry struct {
	Dir    string
	Engine string
	// Ended removes what is left of a sandbox besides its folder; may be nil.
	Ended func(sandbox.Info) error
}

type entry struct {
	Info    sandbox.Info
	Process int    // 0 until it is started
	Began   string // when the process began, to tell it from another with its number
	Starter int    // the process that starts or runs the sandbox
	Since   string // when that one began
}

const entryFile = "sandbox.json"

// Open makes a folder for a new sandbox and records it. The folder has an empty
// home and an empty folder for temporary files.
func (r ProcessRegistry) Open(spec sandbox.Spec) (sandbox.Info, string, error) {
	var number [8]byte
	if _, err := rand.Read(number[:]); err != nil {
		return sandbox.Info{}, "", err
	}
	info := sandbox.Info{ID: hex.EncodeToString(number[:]), Engine: r.Engine, Owner: spec.Owner, Task: spec.Task,
		Generation: spec.Generation, Started: time.Now().UTC(), Running: true}
	dir := filepath.Join(r.Dir, info.ID)
	for _, folder := range []string{"home", "tmp", "etc"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil { //nolint:gosec // the sandbox's user is another
			return sandbox.Info{}, "", task.Wrap(task.DataDir, err, "the folder for a sandbox cannot be made")
		}
	}
	if err := r.write(dir, entry{Info: info, Starter: os.Getpid(), Since: startTime(os.Getpid())}); err != nil {
		return sandbox.Info{}, "", errors.Join(err, workdir.Remove(dir)) // nobody would find it again
	}
	return info, dir, nil
}

// Record notes the process of a sandbox.
func (r ProcessRegistry) Record(dir string, info sandbox.Info, process int) error {
	return r.write(dir, entry{Info: info, Process: process, Began: startTime(process), Starter: os.Getpid(), Since: startTime(os.Getpid())})
}

func (r ProcessRegistry) write(dir string, what entry) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	draft := filepath.Join(dir, entryFile+".new")
	if err := os.WriteFile(draft, text, 0o600); err != nil {
		return task.Wrap(task.DataDir, err, "the sandbox cannot be recorded")
	}
	return os.Rename(draft, filepath.Join(dir, entryFile))
}

func (r ProcessRegistry) read() (map[string]entry, error) {
	folders, err := os.ReadDir(r.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, task.Wrap(task.DataDir, err, "the sandboxes cannot be listed")
	}
	all := map[string]entry{}
	for _, folder := range folders {
		dir := filepath.Join(r.Dir, folder.Name())
		text, err := os.ReadFile(filepath.Join(dir, entryFile))
		if err != nil {
			continue // it is being made or removed
		}
		var found entry
		if err := json.Unmarshal(text, &found); err != nil {
			return nil, task.Wrap(task.DataDir, err, "the record of the sandbox "+folder.Name()+" is broken")
		}
		found.Info.Running = alive(found.Process, found.Began)
		all[dir] = found
	}
	return all, nil
}

// List names an owner's sandboxes.
func (r ProcessRegistry) List(owner string) ([]sandbox.Info, error) {
	all, err := r.read()
	if err != nil {
		return nil, err
	}
	var infos []sandbox.Info
	for _, found := range all {
		if found.Info.Owner == owner {
			infos = append(infos, found.Info)
		}
	}
	return infos, nil
}

// Reap ends and removes an owner's sandboxes, but for those to keep and those
// whose starter is alive in another process and has not begun them yet. One that cannot
// be ended stays recorded, and does not keep the others.
func (r ProcessRegistry) Reap(owner string, keep func(sandbox.Info) bool) (int, error) {
	all, err := r.read()
	if err != nil {
		return 0, err
	}
	reaped := 0
	var failures []error
	for dir, found := range all {
		if found.Info.Owner != owner || keep(found.Info) {
			continue
		}
		if found.Process == 0 && found.Starter != os.Getpid() && alive(found.Starter, found.Since) {
			continue
		}
		if err := r.end(dir, found); err != nil {
			failures = append(failures, err)
			continue
		}
		reaped++
	}
	return reaped, errors.Join(failures...)
}

// end ends a sandbox and removes what is left of it.
func (r ProcessRegistry) end(dir string, found entry) error {
	if found.Info.Running {
		if err := syscall.Kill(found.Process, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end the sandbox %s: %w", found.Info.ID, err)
		}
	}
	if r.Ended != nil {
		if err := r.Ended(found.Info); err != nil {
			return fmt.Errorf("end the sandbox %s: %w", found.Info.ID, err)
		}
	}
	if err := workdir.Remove(dir); err != nil {
		return fmt.Errorf("remove the sandbox %s: %w", found.Info.ID, err)
	}
	return nil
}

func alive(process int, began string) bool {
	return process > 0 && began != "" && startTime(process) == began
}

// startTime is the time at which the kernel started the process, in its own
// unit, or nothing when there is no such process or it has ended.
func startTime(process int) string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(process) + "/stat")
	if err != nil {
		return ""
	}
	const (
		state = 0 // counted from after the name
		begin = 19
	)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) <= begin || fields[state] == "Z" {
		return ""
	}
	return fields[begin]
}
