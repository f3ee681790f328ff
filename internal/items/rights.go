package items

import (
	"context"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// rightsAge is how long we believe what someone may do in a repository: so long
	// a right counts that was taken away.
	rightsAge = time.Minute
	maxRights = 4096
)

// Rights tells what people may do in repositories, and asks the forge for it only
// now and then. Its methods may be called by any number of goroutines.
type Rights struct {
	forges map[task.Forge]forge.Reader
	now    func() time.Time

	mu    sync.Mutex
	known map[person]right
}

type person struct {
	repository task.Repository
	login      string
}

type right struct {
	forge.Access
	at time.Time
}

// NewRights makes Rights. A nil now means the real time.
func NewRights(forges map[task.Forge]forge.Reader, now func() time.Time) *Rights {
	if now == nil {
		now = time.Now
	}
	return &Rights{forges: forges, now: now, known: map[person]right{}}
}

// Access tells what a login may do in the repository of an item.
func (r *Rights) Access(ctx context.Context, item task.Key, login string) (forge.Access, error) {
	who := person{item.Repo(), task.FoldLogin(login)}
	r.mu.Lock()
	found, known := r.known[who]
	r.mu.Unlock()
	if known && r.now().Sub(found.at) < rightsAge {
		return found.Access, nil
	}
	source, connected := r.forges[item.Forge]
	if !connected {
		return forge.NoAccess, task.Errorf(task.Unsupported, "no forge %s is configured", item.Forge)
	}
	at := r.now()
	access, err := source.Access(ctx, item.Repository, login)
	if err != nil {
		return forge.NoAccess, err
	}
	asked := right{access, at}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= maxRights {
		clear(r.known) // costs a few requests
	}
	r.known[who] = asked
	return asked.Access, nil
}
