package guest

import "sync"

// Stderr keeps the beginning of what a guest writes to standard error, for a message.
type Stderr struct {
	mutex sync.Mutex
	text  []byte
}

const stderrMax = 4096

// Write takes everything and keeps what fits.
func (b *Stderr) Write(data []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.text = append(b.text, data[:min(len(data), stderrMax-len(b.text))]...)
	return len(data), nil
}

// Bytes is what was kept.
func (b *Stderr) Bytes() []byte {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return append([]byte(nil), b.text...)
}
