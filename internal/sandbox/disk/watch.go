package disk

import "time"

// Watch tells when the folders of a sandbox take more than they may. It is for
// the whole life of a sandbox, and for one goroutine at a time. Measuring the folders
// can be slow. So it is done at once when the disk's free space says that much was
// written. Somebody else may have freed as much; so it is also done when the free space
// has changed at all, as often as costs a twentieth of the time, and now and then in any
// case. When a command ends it is done more often than that, unless by the free space
// the limit is not near.
type Watch struct {
	Limit int64
	Free  func() (int64, error) // of the file system
	Used  func() int64          // by the sandbox
	// OneDevice says that all that Used counts is on the one file system of Free, so that content
	// that is written there is missing from its free space; see [SameDevice]. Holes in files,
	// further names of a file and empty files are not, though Used counts them: they are found
	// when the folders are measured the next time. Whoever copies the folders measures them first.
	OneDevice bool

	free     int64     // when the folders were measured last
	used     int64     // what they took then
	measured time.Time // zero before the first time
	took     time.Duration
	dying    bool  // it was said that too much is taken, and no command has begun since
	ended    bool  // a command has, since the last look
	allowed  int64 // what they may take: the limit, or what they took when it was last exceeded
}

const (
	// Every is how often the free space is looked at.
	Every = 200 * time.Millisecond
	// measureEvery is how often the folders are measured in any case.
	measureEvery = 30 * time.Second
	// measureAfter is the part of the limit after which they are.
	measureAfter = 16
	// measurePart is how many times as long as a measurement took it is waited.
	measurePart = 20
	// quickMeasure is how long a measurement may take that is made after a command.
	quickMeasure = 100 * time.Millisecond
	// reserve is left to the host in any case.
	reserve = 256 << 20
)

// Over reports whether the sandbox takes more than it may. Where it did when it was
// measured last, it is measured again. What was written in the last moments before
// everything was killed is not held against what begins now.
func (w *Watch) Over() bool {
	if w.used > w.Limit {
		w.used = w.Used()
		if !w.dying {
			w.allowed = min(w.allowed, w.used)
		} else {
			w.allowed = w.used
		}
		w.allowed, w.dying = max(w.Limit, w.allowed), false
	}
	return w.used > w.Limit
}

// CommandEnded has the next look measure the folders unless that takes long, or the limit
// is not near.
func (w *Watch) CommandEnded() { w.ended = true }

// Exceeded looks, and reports whether more is taken than may be. Having said so it
// does not say it again before still more is taken, so that files can be removed.
func (w *Watch) Exceeded(now time.Time) bool {
	free, err := w.Free()
	if err != nil {
		return false // there is nothing to measure by; the size of single files is still limited
	}
	first := w.measured.IsZero()
	due := w.due(free, now)
	w.ended = false
	if !first && w.free-free < w.Limit/measureAfter && free > reserve && !due {
		return false
	}
	if first && free > reserve { // what is there was brought by the host
		w.free, w.measured = free, now
		return false
	}
	began := time.Now()
	w.used = w.Used()
	w.free, w.measured, w.took = free, now, time.Since(began)
	w.allowed = max(w.Limit, min(w.allowed, w.used))
	if w.used > w.allowed {
		w.allowed, w.dying = w.used, true
		return true
	}
	return free < reserve && w.used > reserve
}

// due reports whether the folders are to be measured though little seems to be written.
func (w *Watch) due(free int64, now time.Time) bool {
	since := now.Sub(w.measured)
	near := !w.OneDevice || w.used+w.free-free > w.Limit-w.Limit/measureAfter
	return since >= measureEvery || free != w.free && (since >= measurePart*w.took || w.ended && near && w.took < quickMeasure)
}
