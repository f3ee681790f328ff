package tool

import (
	"bytes"
	"fmt"
	"sync"
)

// collector takes the output of a command: all of it up to a limit, and beyond
// that the beginning and the end, so that no command can fill the memory.
type collector struct {
	mu      sync.Mutex
	most    int
	watch   func(piece []byte)
	head    bytes.Buffer
	tail    []byte // a ring once it is full
	next    int
	dropped int64
}

func newCollector(most int, watch func([]byte)) *collector {
	return &collector{most: most, watch: watch}
}

// Write implements [io.Writer]. It never fails.
func (c *collector) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch != nil {
		c.watch(p)
	}
	written := len(p)
	if room := c.most/2 - c.head.Len(); room > 0 {
		n := min(room, len(p))
		c.head.Write(p[:n])
		p = p[n:]
	}
	for len(p) > 0 {
		if len(c.tail) < c.most/2 {
			n := min(c.most/2-len(c.tail), len(p))
			c.tail = append(c.tail, p[:n]...)
			p = p[n:]
			continue
		}
		n := copy(c.tail[c.next:], p)
		c.next = (c.next + n) % len(c.tail)
		c.dropped += int64(n)
		p = p[n:]
	}
	return written, nil
}

// String is the output.
func (c *collector) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dropped == 0 {
		return c.head.String() + string(c.tail)
	}
	return c.head.String() + fmt.Sprintf("\n[… %d bytes were not kept …]\n", c.dropped) +
		string(c.tail[c.next:]) + string(c.tail[:c.next])
}
