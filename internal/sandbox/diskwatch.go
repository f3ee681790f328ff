package sandbox

import (
	"context"
	"time"
)

// DiskWatch tells when the folders of a sandbox take more than they may.
// Measuring them is slow, so it is done only when the disk's free space says that
// something was written.
type DiskWatch struct {
	Limit int64
	Free  func() (int64, error) // of the file system
	Used  func() int64          // by the sandbox
}

const (
	diskWatchEvery = 200 * time.Millisecond
	// diskReserve is left to the host in any case.
	diskReserve = 256 << 20
)

// Watch sends on the channel, once, when the limit is exceeded, and returns then
// or when the context ends.
func (w DiskWatch) Watch(ctx context.Context, exceeded chan<- Limit) {
	before, err := w.Free()
	if err != nil {
		return // there is nothing to measure by; the size of single files is still limited
	}
	ticker := time.NewTicker(diskWatchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		free, err := w.Free()
		if err != nil {
			return
		}
		if before-free < w.Limit/4 && free > diskReserve {
			continue
		}
		before = free
		used := w.Used()
		if used > w.Limit || (free < diskReserve && used > diskReserve) {
			select {
			case exceeded <- DiskLimit:
			case <-ctx.Done():
			}
			return
		}
	}
}
