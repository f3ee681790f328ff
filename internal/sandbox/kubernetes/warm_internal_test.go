package kubernetes

import (
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
)

// What was in the making when pods had to give way is not kept when it is there. Until the quota has
// noticed that it is gone, there may be more room.
func TestPodsInTheMakingGiveWay(t *testing.T) {
	t.Parallel()
	w := newWarmPods(2)
	if err := w.open("keeper"); err != nil {
		t.Fatal(err)
	}
	kind := kindOf(sandbox.Spec{Image: "x"}, record{})
	now := time.Now()
	w.noteUse(kind, now)
	if _, begin := w.plan(now); len(begin) != 2 {
		t.Fatalf("%d are made", len(begin))
	}
	if kept, _ := w.made(kind, &box{}, nil, now); !kept {
		t.Error("the first is not kept, and nobody has asked for room")
	}
	stop, more := w.yield(now)
	if len(stop) != 1 || !more {
		t.Errorf("%d give way; more room: %t", len(stop), more)
	}
	now = now.Add(freedWithin + time.Second)
	if _, more := w.yield(now); !more {
		t.Error("there is no more room, although one is in the making")
	}
	if kept, _ := w.made(kind, &box{}, nil, now); kept {
		t.Error("what was to give way is kept")
	}
	if stop, more := w.yield(now); len(stop) != 0 || !more {
		t.Errorf("%d give way; there may be more room when the last is gone: %t", len(stop), more)
	}
	now = now.Add(freedWithin)
	if _, more := w.yield(now); more {
		t.Error("there may be more room for ever")
	}
	now = now.Add(yieldPause)
	if _, begin := w.plan(now); len(begin) != 2 {
		t.Fatalf("later %d are made", len(begin))
	}
	if kept, _ := w.made(kind, &box{}, nil, now); !kept {
		t.Error("what is made after the pause is not kept")
	}
}
