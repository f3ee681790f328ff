package drill

import "sync"

// disk is a small file system of one process.
type disk struct {
	dir  string
	busy sync.Mutex // held while it is full
}

// diskSize is how large the file system of a process is, in bytes. It is in memory, of which it
// takes what is written.
const diskSize = 2 << 30
