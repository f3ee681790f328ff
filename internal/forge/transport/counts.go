package transport

import "sync/atomic"

// Counts is what an installation has cost so far.
type Counts struct {
	Requests    int64 // sent, of every kind
	Writes      int64 // of these, writes of content
	NotModified int64 // of these, answered 304: they cost no quota on GitHub
	Repeats     int64 // of these, GETs that were asked again after a failure
	Limited     int64 // answers that asked us to slow down
	Withheld    int64 // not sent, because a limit was known to be reached
	Failed      int64 // not answered
}

type counter struct {
	requests, writes, notModified, repeats, limited, withheld, failed atomic.Int64
}

func (c *counter) asked(write bool) {
	c.requests.Add(1)
	if write {
		c.writes.Add(1)
	}
}

// Counts returns what was counted until now.
func (t *Transport) Counts() Counts {
	c := &t.counter
	return Counts{
		Requests: c.requests.Load(), Writes: c.writes.Load(), NotModified: c.notModified.Load(), Repeats: c.repeats.Load(),
		Limited: c.limited.Load(), Withheld: c.withheld.Load(), Failed: c.failed.Load(),
	}
}
