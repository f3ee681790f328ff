package guest

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// TestGuestWithoutResources: the host learns that an error of the guest was a lack of
// resources by a field, whatever its text.
func TestGuestWithoutResources(t *testing.T) {
	t.Parallel()
	for cause, exhausted := range map[error]bool{syscall.ENOMEM: true, sandbox.Exhausted(errors.New("full")): true, syscall.ENOENT: false} {
		commands := forgingGuest(t, t.TempDir(), func(stream net.Conn) {
			_ = writeMessage(stream, frameEnd, failedEnd(cause)) // the host may hang up as soon as it has it
		})
		_, err := commands.Run(t.Context(), sandbox.Command{Text: "true"})
		if task.CodeOf(err) != task.Unavailable || sandbox.IsExhausted(err) != exhausted {
			t.Errorf("a command that fails with %v gave %v", cause, err)
		}
		files := forgingGuest(t, t.TempDir(), func(stream net.Conn) {
			_ = writeMessage(stream, frameAnswer, failedAnswer(cause)) // the host may hang up as soon as it has it
		})
		if err := files.Leave(t.Context()); task.CodeOf(err) != task.Unavailable || sandbox.IsExhausted(err) != exhausted {
			t.Errorf("a request that fails with %v gave %v", cause, err)
		}
	}
}

// TestOlderGuestWithoutResources: a guest that has no field for the reason has it in its text.
func TestOlderGuestWithoutResources(t *testing.T) {
	t.Parallel()
	for text, exhausted := range map[string]bool{"mkdir /home: no space left on device": true, "there is no shell": false} {
		older := forgingGuest(t, t.TempDir(), func(stream net.Conn) {
			_ = writeMessage(stream, frameHello, map[string]any{"version": protocolVersion, "shell": "sh", "error": text}) // the host may hang up as soon as it has it
		})
		if err := older.Hello(t.Context()); task.CodeOf(err) != task.Unavailable || sandbox.IsExhausted(err) != exhausted {
			t.Errorf("a guest that says %q gave %v", text, err)
		}
		older = forgingGuest(t, t.TempDir(), func(stream net.Conn) {
			_ = writeMessage(stream, frameEnd, map[string]any{"error": text}) // the host may hang up as soon as it has it
		})
		if _, err := older.Run(t.Context(), sandbox.Command{Text: "true"}); task.CodeOf(err) != task.Unavailable || sandbox.IsExhausted(err) != exhausted {
			t.Errorf("a command that fails with %q gave %v", text, err)
		}
	}
}
