package guest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// cutting is a connection that breaks after some bytes.
type cutting struct {
	net.Conn
	mutex sync.Mutex
	left  int
}

func (c *cutting) Write(data []byte) (int, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(data) > c.left {
		n, _ := c.Conn.Write(data[:c.left])
		c.left = 0
		_ = c.Close()
		return n, io.ErrClosedPipe
	}
	c.left -= len(data)
	return c.Conn.Write(data)
}

// pair is a connection's two ends.
func pair(t *testing.T) (here, there net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Error(err)
		return nil, nil
	}
	defer func() { _ = listener.Close() }()
	if here, err = net.Dial("tcp", listener.Addr().String()); err == nil {
		there, err = listener.Accept()
	}
	if err != nil {
		t.Error(err)
	}
	return here, there
}

// Nothing is lost and nothing comes twice, however often connections break.
func TestLinkOutlivesItsConnections(t *testing.T) {
	t.Parallel()
	one, other := NewLink(), NewLink()
	var carrying sync.WaitGroup
	stop := make(chan struct{})
	broken := 0
	carrying.Go(func() {
		for {
			here, there := pair(t)
			var both sync.WaitGroup
			both.Go(func() { _ = one.Connect(&cutting{Conn: here, left: 300_000}) })
			both.Go(func() { _ = other.Connect(&cutting{Conn: there, left: 500_000}) })
			both.Wait()
			select {
			case <-stop:
				return
			default:
				broken++
			}
		}
	})
	sent := make([]byte, 8<<20)
	_, _ = rand.Read(sent)
	var writing sync.WaitGroup
	for _, link := range []*Link{one, other} {
		writing.Go(func() {
			for at := 0; at < len(sent); at += 100_001 {
				if _, err := link.Write(sent[at:min(len(sent), at+100_001)]); err != nil {
					t.Errorf("write: %v", err)
					return
				}
			}
		})
	}
	var reading sync.WaitGroup
	for _, link := range []*Link{one, other} {
		reading.Go(func() {
			got := make([]byte, len(sent))
			if _, err := io.ReadFull(link, got); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("what came differs from what was sent: %v", err)
			}
		})
	}
	writing.Wait()
	reading.Wait()
	close(stop)
	one.End(errors.New("over"))
	_ = other.Close()
	carrying.Wait()
	if broken < 10 {
		t.Errorf("only %d connections broke", broken)
	}
	if _, err := one.Read(make([]byte, 1)); err == nil || err.Error() != "over" {
		t.Errorf("after the end: %v", err)
	}
	if _, err := other.Write([]byte("x")); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}

func TestLinkRefusesAnotherLinksOtherEnd(t *testing.T) {
	t.Parallel()
	link := NewLink()
	here, there := pair(t)
	go func() { // ends with the connection
		greeting := make([]byte, 8)
		_, _ = io.ReadFull(there, greeting)
		_, _ = there.Write([]byte{0, 0, 0, 0, 0, 0, 0, 9})
	}()
	if err := link.Connect(here); err == nil {
		t.Error("an end that has what was never sent was taken")
	}
	if link.Down() <= 0 || link.Down() > time.Hour {
		t.Errorf("down for %s", link.Down())
	}
}
