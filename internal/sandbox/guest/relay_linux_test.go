package guest

import (
	"fmt"
	"net"
	"os"
	"testing"
)

// A relay may be there before the guest that it is for: it waits for it.
func TestRelayWaitsForItsGuest(t *testing.T) {
	t.Parallel()
	socket := fmt.Sprintf("@toryo-test-%d", os.Getpid()) // of no file
	if _, err := net.Dial("unix", socket); err == nil {
		t.Fatal("there is a guest already")
	}
	connected := make(chan error, 1)
	go func() {
		connection, err := dialGuest(socket)
		if err == nil {
			_, err = connection.Write([]byte("hello"))
		}
		connected <- err
	}()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	connection, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	said := make([]byte, len("hello"))
	if _, err := connection.Read(said); err != nil || string(said) != "hello" {
		t.Errorf("it said %q, %v", said, err)
	}
	if err := <-connected; err != nil {
		t.Error(err)
	}
}
