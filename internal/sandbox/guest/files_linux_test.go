package guest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/yamux"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// linked is a client with a guest that serves a workspace, but runs no commands.
func linked(t *testing.T) (client *Client, workspace string) {
	t.Helper()
	return linkedTo(t, &server{shell: "sh"})
}

func linkedTo(t *testing.T, s *server) (client *Client, workspace string) {
	t.Helper()
	host, inside := net.Pipe()
	session, err := yamux.Server(inside, sessionConfig(writeTimeout))
	if err != nil {
		t.Fatal(err)
	}
	workspace = t.TempDir()
	s.session, s.options, s.watch = session, Options{Workspace: workspace}, newWatch()
	if client, err = NewClient(host, nil, 0); err != nil {
		t.Fatal(err)
	}
	go s.acceptRequests() // ends with the session
	if err := client.Mirror(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		_ = session.Close()
		_ = client.mirror.root.Close()
		if s.files != nil {
			_ = s.files.root.Close()
		}
	})
	return client, workspace
}

// TestGuestThatCannotPrepare: what a guest lacked for its preparation is in its greeting and
// in the end of each command.
func TestGuestThatCannotPrepare(t *testing.T) {
	t.Parallel()
	for cause, exhausted := range map[error]bool{syscall.EMFILE: true, sandbox.Exhausted(errors.New("full")): true, syscall.EACCES: false} {
		client, _ := linkedTo(t, &server{problem: fmt.Errorf("prepare: %w", cause)})
		if err := client.Hello(t.Context()); task.CodeOf(err) != task.Unavailable || sandbox.IsExhausted(err) != exhausted {
			t.Errorf("with %v the greeting gave %v", cause, err)
		}
		if _, err := client.Run(t.Context(), sandbox.Command{Text: "true"}); task.CodeOf(err) != task.Unavailable || sandbox.IsExhausted(err) != exhausted {
			t.Errorf("with %v a command gave %v", cause, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	failing := &server{options: Options{State: filepath.Join(file, "folder", "state")}}
	if failing.prepare(); !errors.Is(failing.problem, syscall.ENOTDIR) {
		t.Errorf("a folder in a file gave %v", failing.problem)
	}
}

// TestGuestOfAnotherVersion: a guest that speaks another version is not spoken to.
func TestGuestOfAnotherVersion(t *testing.T) {
	t.Parallel()
	client, _ := linked(t)
	if err := client.Hello(t.Context()); err != nil {
		t.Errorf("the same version: %v", err)
	}
	for _, said := range []any{hello{Shell: "sh", Version: protocolVersion + 1}, map[string]string{"shell": "sh", "error": ""}} {
		other := forgingGuest(t, t.TempDir(), func(stream net.Conn) {
			_ = writeMessage(stream, frameHello, said) // the host may hang up as soon as it has it
		})
		err := other.Hello(t.Context())
		if task.CodeOf(err) != task.NotReady || !strings.Contains(err.Error(), "guest_image") || !strings.Contains(err.Error(), "start this program again") {
			t.Errorf("to %v the host says %v", said, err)
		}
	}
}

// TestWhatTheHostCannotTakeComesAgain: a guest takes files for sent only when the host
// says that it has them.
func TestWhatTheHostCannotTakeComesAgain(t *testing.T) {
	t.Parallel()
	client, workspace := linked(t)
	do(t, client.mirror.dir, file("theirs", "1", 0o644))
	if err := client.Push(t.Context()); err != nil {
		t.Fatal(err)
	}
	do(t, workspace, file("theirs", "2", 0o644), file("new", "3", 0o644))
	good := client.mirror.root
	client.mirror.root, client.mirror.skip = closed(t), false
	if _, err := client.Pull(t.Context(), 1<<20); err == nil {
		t.Fatal("it was taken")
	}
	client.mirror.root, client.mirror.skip = good, true
	if left, err := client.Pull(t.Context(), 1<<20); err != nil || left != (Left{}) {
		t.Fatal(left, err)
	}
	same(t, workspace, client.mirror.dir)
}

// closed is a folder in which nothing can be made.
func closed(t *testing.T) *workdir.Dir {
	t.Helper()
	opened, err := workdir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	return opened
}
