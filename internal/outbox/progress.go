package outbox

import (
	"strconv"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// maxNames is how many progress comments are remembered. Forgetting them costs a
// request each.
const maxNames = 4096

// progress remembers the ids of progress comments by their names.
type progress struct {
	mu  sync.Mutex
	ids map[string]string
}

func (p *progress) get(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ids[name]
}

func (p *progress) set(name, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ids == nil || len(p.ids) >= maxNames {
		p.ids = map[string]string{}
	}
	p.ids[name] = id
}

// spacing keeps the writes of one progress comment apart.
type spacing struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// next returns when the next write may be, and not before it is due.
func (s *spacing) next(name string, due time.Time, every time.Duration) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, found := s.last[name]; found && last.Add(every).After(due) {
		return last.Add(every)
	}
	return due
}

// put remembers for when a write was put.
func (s *spacing) put(name string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || len(s.last) >= maxNames {
		s.last = map[string]time.Time{}
	}
	s.last[name] = at
}

// ProgressName tells the progress comments of a task's lives apart.
func ProgressName(t task.Task) string { return "run/" + strconv.FormatInt(t.FirstGeneration, 10) }
