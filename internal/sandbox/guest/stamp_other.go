//go:build !linux

package guest

import "io/fs"

// nodeOf has nothing to tell files apart by here but size and time.
func nodeOf(fs.FileInfo) (node uint64, changed int64) { return 0, 0 }
