package guest

import (
	"bytes"
	"debug/elf"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What is in the file of a guest stays in memory when commands take all that there is. Where it may not
// lock that much it works all the same.
func TestGuestStaysInMemory(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "guest")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program, "./program")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the guest: %v\n%s", err, said)
	}
	var may unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &may); err != nil {
		t.Fatal(err)
	}
	if locked, code := lockedBy(t, program, "exec"), codeOf(t, program); locked < code && may.Cur >= 8<<20 {
		t.Errorf("%d bytes of %d are locked", locked, code)
	}
	lockedBy(t, program, "ulimit -l 0 && exec") // it says hello
}

// codeOf is how much of a program is read from its file and never written.
func codeOf(t *testing.T, program string) (size uint64) {
	t.Helper()
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for _, part := range file.Progs {
		if part.Type == elf.PT_LOAD && part.Flags&elf.PF_W == 0 {
			size += part.Filesz
		}
	}
	return size
}

// lockedBy starts a guest by a command of a shell and says how many bytes it has locked.
func lockedBy(t *testing.T, program, by string) uint64 {
	t.Helper()
	dir := t.TempDir()
	socket := fmt.Sprintf("@toryo-lock-%d-%d", os.Getpid(), time.Now().UnixNano()) // of no file
	arguments, err := Arguments(Options{Workspace: dir, Home: dir, State: filepath.Join(dir, "state"), Socket: socket, Patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	guest := exec.Command("sh", append([]string{"-c", by + ` "$0" "$@"`, program}, arguments...)...)
	var stderr bytes.Buffer
	guest.Stderr = &stderr
	if err := guest.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = guest.Process.Kill(); _ = guest.Wait() }()
	connection, err := dialGuest(socket)
	if err != nil {
		t.Fatal(err)
	}
	link := NewLink()
	connecting := make(chan error, 1)
	go func() { connecting <- link.Connect(connection) }() // ends with the link
	client, err := NewLinkedClient(link, time.Minute, func(c net.Conn) { _ = c.Close() }, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(); _ = link.Close(); <-connecting }()
	if err := client.Hello(t.Context()); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	return uint64(fields(fmt.Sprintf("/proc/%d/status", guest.Process.Pid), "VmLck:"))
}
