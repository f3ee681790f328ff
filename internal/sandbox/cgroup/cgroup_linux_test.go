package cgroup_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/sandbox/cgroup"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// machine is the files by which a kernel tells of its control groups, without the
// kernel.
func machine(t *testing.T, files map[string]string) *cgroup.System {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		at := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return &cgroup.System{Root: root}
}

const (
	second = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 none rw\n"
	first  = "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup none rw,memory\n32 23 0:28 / /sys/fs/cgroup/pids rw - cgroup none rw,pids\n"
)

// Without the kernel a group that is made has no files in it, so that none can be
// used: what is looked at is why.
func TestWhereGroupsAreLookedFor(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no control groups": {map[string]string{"proc/self/cgroup": "", "proc/self/mountinfo": ""}, "version 1 has no memory controller"},
		"nothing at all":    {nil, "no such file"},
		"version 2 without controllers": {map[string]string{"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": second,
			"sys/fs/cgroup/cgroup.controllers": "", "sys/fs/cgroup/cgroup.procs": ""}, "version 2 has no memory controller"},
		"version 2 with memory": {map[string]string{"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": second, "sys/fs/cgroup/cgroup.procs": "",
			"sys/fs/cgroup/cgroup.controllers": "memory pids cpu", "sys/fs/cgroup/cgroup.subtree_control": "memory pids cpu"}, "cgroup/toryo-try-"},
		"version 1 below its own group": {map[string]string{"proc/self/cgroup": "4:memory:/own\n3:pids:/\n", "proc/self/mountinfo": first,
			"sys/fs/cgroup/memory/own/cgroup.procs": "", "sys/fs/cgroup/pids/cgroup.procs": ""}, "memory/own/toryo-try-"},
		"version 1 in a container": {map[string]string{"proc/self/cgroup": "4:memory:/docker/abc\n", "proc/self/mountinfo": first,
			"sys/fs/cgroup/memory/cgroup.procs": ""}, "memory/toryo-try-"},
	} {
		system := machine(t, test.files)
		version, err := system.Version()
		if version != 0 || !errors.Is(err, cgroup.ErrNone) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %d, %v, want %q", name, version, err, test.want)
		}
		if group, err := system.Make("x", cgroup.Limits{}); group != nil || !errors.Is(err, cgroup.ErrNone) {
			t.Errorf("%s: %v, %v", name, group, err)
		}
	}
}

// In version 2 the controllers are handed down to the groups below.
func TestControllersAreHandedDown(t *testing.T) {
	t.Parallel()
	system := machine(t, map[string]string{"proc/self/cgroup": "0::/user/app\n", "proc/self/mountinfo": second,
		"sys/fs/cgroup/cgroup.controllers": "memory pids cpu io", "sys/fs/cgroup/cgroup.subtree_control": "", "sys/fs/cgroup/cgroup.procs": "",
		"sys/fs/cgroup/user/app/cgroup.controllers": "memory pids", "sys/fs/cgroup/user/app/cgroup.subtree_control": "", "sys/fs/cgroup/user/app/cgroup.procs": ""})
	_, _ = system.Version() // that it fails without a kernel is tested above
	own, want := "sys/fs/cgroup/user/app", "+memory +pids"
	if os.Geteuid() == 0 { // the group was not delegated, and is its manager's
		own, want = "sys/fs/cgroup", "+memory +pids +cpu"
	}
	text, err := os.ReadFile(filepath.Join(system.Root, own, "cgroup.subtree_control"))
	if err != nil || string(text) != want {
		t.Errorf("%s has %q, %v, want %q", own, text, err, want)
	}
}

// TestTheKernelKeepsTheLimits is against the real thing, where it is to be had.
func TestTheKernelKeepsTheLimits(t *testing.T) {
	t.Parallel()
	system := new(cgroup.System)
	version, err := system.Version()
	if err != nil {
		testkit.LeaveOut(t, "control groups that may be used")
	}
	group, err := system.Make("toryo-test-"+strings.ToLower(filepath.Base(t.TempDir())), cgroup.Limits{Memory: 64 << 20, Threads: 20, CPUs: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := group.Remove(); err != nil {
			t.Error(err)
		}
	})
	enter := "for f in " + strings.Join(group.Entrances(), " ") + "; do echo 0 > $f; done; "
	run := func(script string) (string, error) {
		output, err := exec.CommandContext(t.Context(), "bash", "-c", enter+script).CombinedOutput()
		return string(output), err
	}
	if output, err := run("echo in"); err != nil || output != "in\n" {
		t.Fatalf("version %d: %q, %v", version, output, err)
	}
	if output, err := run("a=0123456789abcdef; while :; do a=$a$a; done"); err == nil {
		t.Errorf("a memory eater ended with %q", output)
	}
	if group.Kills() == 0 {
		t.Error("no kill was counted")
	}
	if output, err := run("for i in $(seq 100); do sleep 5 & done; wait"); err == nil && !strings.Contains(output, "Resource temporarily unavailable") {
		t.Errorf("100 processes ended with %.200q, %v", output, err)
	}
	left := exec.CommandContext(t.Context(), "bash", "-c", enter+"echo begun; exec sleep 600")
	output, err := left.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := output.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if err := group.Remove(); err != nil {
		t.Errorf("remove it: %v", err)
	}
	if err := left.Wait(); err == nil {
		t.Error("what was in the group lives on")
	}
	if err := group.Remove(); err != nil {
		t.Errorf("remove it again: %v", err)
	}
}
