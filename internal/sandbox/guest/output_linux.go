package guest

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// output sends what a command prints to the host: the first part as it comes,
// and of the rest only the end. So a command that prints without end costs no
// more than one that prints up to the limit.
type output struct {
	mutex   sync.Mutex
	stream  net.Conn
	head    int // how much may still be sent as it comes
	tail    []byte
	last    frameKind // of what the tail ends with
	tailMax int
	bytes   int64
	past    int64 // how much came after the head was full
}

// headShare of the limit is sent as it comes; the rest is kept for the end,
// where the causes of failures usually are.
const headShare = 4

func newOutput(stream net.Conn, limit int) *output {
	head := limit / headShare
	return &output{stream: stream, head: head, tailMax: limit - head}
}

// take reads a pipe until it ends or its deadline comes, and then what is in it.
func (o *output) take(kind frameKind, from *os.File) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			o.add(kind, buffer[:n])
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			o.takeRest(kind, from, buffer)
		}
		if err != nil {
			return
		}
	}
}

// mostRest is more than a pipe holds.
const mostRest = 2 << 20

// takeRest reads what is in a pipe, and waits for nothing. Where there is much to do,
// the deadline comes before the first read.
func (o *output) takeRest(kind frameKind, from *os.File, buffer []byte) {
	raw, err := from.SyscallConn()
	if err != nil || from.SetReadDeadline(time.Time{}) != nil {
		return // it is closed
	}
	for taken := 0; taken < mostRest; {
		n := 0
		if raw.Read(func(file uintptr) bool { n, err = syscall.Read(int(file), buffer); return true }) != nil || err != nil || n <= 0 {
			return
		}
		o.add(kind, buffer[:n])
		taken += n
	}
}

func (o *output) add(kind frameKind, data []byte) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.bytes += int64(len(data))
	if now := min(o.head, len(data)); now > 0 {
		o.head -= now
		_ = writeFrame(o.stream, kind, data[:now]) // the host being gone ends the run anyway
		data = data[now:]
	}
	if len(data) == 0 {
		return
	}
	before := len(o.tail)
	o.tail = appendLines(o.tail, data, kind != o.last)
	o.past += int64(len(o.tail) - before)
	o.last = kind
	if len(o.tail) > 2*o.tailMax {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-o.tailMax:]...)
	}
}

func (o *output) finish(last end) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	last.Bytes = o.bytes
	if len(o.tail) > o.tailMax {
		o.tail = o.tail[len(o.tail)-o.tailMax:]
	}
	last.Dropped = o.past - int64(len(o.tail))
	if len(o.tail) > 0 {
		_ = writeFrame(o.stream, frameTail, o.tail)
	}
	_ = writeMessage(o.stream, frameEnd, last)
}
