package guest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The code of a guest stays in memory when commands take all that there is. The guest works
// where it may not lock that much, too.
func TestGuestStaysInMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "guest")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program, "./program")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the guest: %v\n%s", err, said)
	}
	socket := fmt.Sprintf("@toryo-lock-%d", os.Getpid()) // of no file
	arguments, err := Arguments(Options{Workspace: dir, Home: dir, State: filepath.Join(dir, "state"), Socket: socket, Patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	guest := exec.Command(program, arguments...)
	if err := guest.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guest.Process.Kill(); _ = guest.Wait() })
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
	t.Cleanup(func() { _ = client.Close(); _ = link.Close(); <-connecting })
	if err := client.Hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	var may unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &may); err != nil || may.Cur < 8<<20 {
		return // it cannot be locked here, and the guest works all the same
	}
	about, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", guest.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	code, locked := 0, 0
	ours := false
	for line := range strings.Lines(string(about)) {
		switch columns := strings.Fields(line); {
		case strings.Contains(columns[0], "-"):
			ours = columns[len(columns)-1] == program && strings.HasPrefix(columns[1], "r-")
		case ours && columns[0] == "VmFlags:":
			code++
			if strings.Contains(line, " lo") {
				locked++
			}
		}
	}
	if code < 2 || locked != code {
		t.Errorf("%d of %d parts of the code are locked:\n%s", locked, code, about)
	}
}
