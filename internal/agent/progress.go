package agent

import (
	"context"
	"sync"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/wire"
)

// progress brings the text of the progress comment to the server. Only the last
// one counts: what is overtaken is never sent.
type progress struct {
	held *wire.RunClient

	sending sync.Mutex // held while a text is on its way
	over    bool       // nothing more is sent; guarded by sending

	mutex   sync.Mutex
	text    string
	unsent  bool
	changed chan struct{} // has room for one
}

func newProgress(held *wire.RunClient) *progress {
	return &progress{held: held, changed: make(chan struct{}, 1)}
}

// set replaces the text. It does not wait.
func (p *progress) set(text string) {
	p.mutex.Lock()
	p.text, p.unsent = text, true
	p.mutex.Unlock()
	lifecycle.Signal(p.changed)
}

// run sends the newest text until the context ends. A text that the server will
// not take ends nothing: it is only for looking at.
func (p *progress) run(ctx context.Context) error {
	for {
		select {
		case <-p.changed:
		case <-ctx.Done():
			return nil
		}
		_, err := persist(ctx, callTimeout, func(ctx context.Context) (struct{}, error) {
			p.sending.Lock()
			defer p.sending.Unlock()
			text, unsent := p.take()
			if !unsent || p.over {
				return struct{}{}, nil
			}
			err := p.held.Progress(ctx, text)
			if err != nil {
				p.putBack()
			}
			return struct{}{}, err
		})
		if lost(err) {
			return err
		}
	}
}

// last is the newest text, for the result to bring. Nothing is sent after it, and what
// is on its way is waited for: an older text must not come behind it.
func (p *progress) last() string {
	p.sending.Lock()
	defer p.sending.Unlock()
	p.over = true
	text, _ := p.take()
	return text
}

func (p *progress) take() (string, bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	text, unsent := p.text, p.unsent
	p.unsent = false
	return text, unsent
}

// putBack says that what was taken could not be sent.
func (p *progress) putBack() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.unsent = true
}
