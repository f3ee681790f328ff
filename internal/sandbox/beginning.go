package sandbox

import "sync"

// ExitFileTooLarge is how a process ends that wrote a file larger than it may:
// 128 and the number of SIGXFSZ.
const ExitFileTooLarge = 128 + 25

// Beginning keeps the beginning of what is written to it, for a message.
type Beginning struct {
	mutex sync.Mutex
	text  []byte
}

const beginningMax = 4096

// Write takes everything and keeps what fits.
func (b *Beginning) Write(data []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.text = append(b.text, data[:min(len(data), beginningMax-len(b.text))]...)
	return len(data), nil
}

// Bytes is what was kept.
func (b *Beginning) Bytes() []byte {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return append([]byte(nil), b.text...)
}
