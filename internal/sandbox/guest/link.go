package guest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Link is a stream of bytes that outlives the connections that carry it. What was
// sent is kept until the other end has it, so that nothing is lost or comes twice
// when one connection breaks and another takes its place.
//
// Each connection begins with the number of bytes that either end has received.
// Then come frames: data, or the number received by now. One goroutine reads a
// link and one writes to it; connections may be given to it by any.
type Link struct {
	mutex   sync.Mutex
	changed *sync.Cond

	carrier io.ReadWriteCloser // nil between connections
	since   time.Time          // when the last connection broke

	base    uint64 // how much the other end is known to have
	pending []byte // what follows base
	written int    // how much of it went into this connection

	received uint64
	incoming bytes.Buffer
	told     uint64 // the number received that the other end was told last

	ended error
}

const (
	// linkWindow bounds what is kept at either end.
	linkWindow = 1 << 20
	linkChunk  = 64 << 10

	linkData byte = 1
	linkHave byte = 2
)

// NewLink makes a link that has no connection yet.
func NewLink() *Link {
	link := &Link{since: time.Now()}
	link.changed = sync.NewCond(&link.mutex)
	return link
}

// Connect sends the data of the link over a connection, in place of the one that it has. It returns
// when that breaks or the link is closed, and owns the connection.
func (l *Link) Connect(connection io.ReadWriteCloser) error {
	defer func() { _ = connection.Close() }()
	var greeting [8]byte
	l.mutex.Lock()
	binary.BigEndian.PutUint64(greeting[:], l.received)
	old := l.carrier
	l.carrier, l.since = nil, time.Now() // so that nothing more is received after the greeting
	l.mutex.Unlock()
	if old != nil {
		_ = old.Close()
	}
	if _, err := connection.Write(greeting[:]); err != nil {
		return fmt.Errorf("greet: %w", err)
	}
	if _, err := io.ReadFull(connection, greeting[:]); err != nil {
		return fmt.Errorf("await the greeting: %w", err)
	}
	if err := l.begin(connection, binary.BigEndian.Uint64(greeting[:])); err != nil {
		return err
	}
	var writing sync.WaitGroup
	writing.Go(func() { l.send(connection) })
	err := l.receive(connection)
	l.drop(connection)
	writing.Wait()
	return err
}

func (l *Link) begin(connection io.ReadWriteCloser, has uint64) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.ended != nil {
		return l.ended
	}
	if !l.acknowledge(has) {
		return errors.New("the other end does not know this link")
	}
	l.carrier, l.written, l.told = connection, 0, l.received
	l.changed.Broadcast()
	return nil
}

// acknowledge forgets what the other end has. It is called with the mutex held.
func (l *Link) acknowledge(has uint64) bool {
	if has < l.base || has > l.base+uint64(len(l.pending)) {
		return false
	}
	gone := int(has - l.base) //nolint:gosec // no more than the window
	l.pending = append(l.pending[:0], l.pending[gone:]...)
	l.base, l.written = has, max(0, l.written-gone)
	l.changed.Broadcast()
	return true
}

// drop takes a broken connection off the link.
func (l *Link) drop(connection io.ReadWriteCloser) {
	_ = connection.Close()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.carrier == connection {
		l.carrier, l.since = nil, time.Now()
	}
	l.changed.Broadcast()
}

// send writes what there is to write until the connection is no longer the link's.
func (l *Link) send(connection io.ReadWriteCloser) {
	for {
		frame, going := l.next(connection)
		if !going {
			return
		}
		if _, err := connection.Write(frame); err != nil {
			_ = connection.Close() // so that receive ends too
			return
		}
	}
}

func (l *Link) next(connection io.ReadWriteCloser) (frame []byte, going bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for {
		switch {
		case l.carrier != connection || l.ended != nil:
			return nil, false
		case l.received-l.told >= linkWindow/4 || (l.received > l.told && l.written == len(l.pending)):
			l.told = l.received
			return binary.BigEndian.AppendUint64([]byte{linkHave}, l.received), true
		case l.written < len(l.pending):
			data := l.pending[l.written:min(len(l.pending), l.written+linkChunk)]
			l.written += len(data)
			frame = binary.BigEndian.AppendUint32([]byte{linkData}, uint32(len(data))) //nolint:gosec // no more than a chunk
			return append(frame, data...), true
		}
		l.changed.Wait()
	}
}

// receive takes frames until the connection breaks.
func (l *Link) receive(connection io.ReadWriteCloser) error {
	buffer := make([]byte, linkChunk)
	for {
		if _, err := io.ReadFull(connection, buffer[:1]); err != nil {
			return err
		}
		var err error
		switch buffer[0] {
		case linkHave:
			err = l.receiveNumber(connection, buffer)
		case linkData:
			err = l.receiveData(connection, buffer)
		default:
			err = errors.New("the other end sent an unknown frame")
		}
		if err != nil {
			return err
		}
	}
}

func (l *Link) receiveNumber(connection io.ReadWriteCloser, buffer []byte) error {
	if _, err := io.ReadFull(connection, buffer[:8]); err != nil {
		return err
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if !l.acknowledge(binary.BigEndian.Uint64(buffer[:8])) {
		return errors.New("the other end has what was never sent")
	}
	return nil
}

func (l *Link) receiveData(connection io.ReadWriteCloser, buffer []byte) error {
	if _, err := io.ReadFull(connection, buffer[:4]); err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(buffer[:4])
	if length > linkChunk {
		return fmt.Errorf("a frame of %d bytes is too long", length)
	}
	if _, err := io.ReadFull(connection, buffer[:length]); err != nil {
		return err
	}
	if !l.take(connection, buffer[:length]) {
		return errors.New("another connection took over")
	}
	return nil
}

func (l *Link) take(connection io.ReadWriteCloser, data []byte) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for l.incoming.Len() > linkWindow && l.carrier == connection && l.ended == nil {
		l.changed.Wait()
	}
	if l.carrier != connection || l.ended != nil {
		return false
	}
	_, _ = l.incoming.Write(data) // it never fails
	l.received += uint64(len(data))
	l.changed.Broadcast()
	return true
}

// Read waits for bytes of the other end, through any number of connections.
func (l *Link) Read(data []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for l.incoming.Len() == 0 {
		if l.ended != nil {
			return 0, l.ended
		}
		l.changed.Wait()
	}
	n, err := l.incoming.Read(data)
	l.changed.Broadcast()
	return n, err
}

// Write takes bytes for the other end. It waits while too much is on the way.
func (l *Link) Write(data []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	total := len(data)
	for len(data) > 0 {
		for len(l.pending) >= linkWindow && l.ended == nil {
			l.changed.Wait()
		}
		if l.ended != nil {
			return total - len(data), l.ended
		}
		n := min(len(data), linkWindow-len(l.pending))
		l.pending = append(l.pending, data[:n]...)
		data = data[n:]
		l.changed.Broadcast()
	}
	return total, nil
}

// Close ends the link.
func (l *Link) Close() error {
	l.End(io.EOF)
	return nil
}

// End ends the link with the error that readers and writers get.
func (l *Link) End(reason error) {
	l.mutex.Lock()
	if l.ended == nil {
		l.ended = reason
	}
	carrier := l.carrier
	l.carrier = nil
	l.changed.Broadcast()
	l.mutex.Unlock()
	if carrier != nil {
		_ = carrier.Close()
	}
}

// Down says for how long no connection has carried the link.
func (l *Link) Down() time.Duration {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.carrier != nil {
		return 0
	}
	return time.Since(l.since)
}
