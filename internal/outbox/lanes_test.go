package outbox_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// What is only nice to have lets everything else pass when the forge does not take it, keeps
// the order among itself, and is written as soon as it can be.
func TestNothingWaitsForWhatIsNiceToHave(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		methods []string
		nice    []outbox.Payload
		want    []string // calls that succeed, in order
	}{
		"labels": {
			[]string{"AddLabel", "RemoveLabel"},
			[]outbox.Payload{outbox.StateLabel{Label: "running", Others: []string{"stopped"}}, outbox.StateLabel{Label: "stopped", Others: []string{"running"}}},
			[]string{"AddLabel running", "AddLabel stopped", "RemoveLabel running"},
		},
		"reactions": {
			[]string{"React", "Unreact"},
			[]outbox.Payload{outbox.React{Reaction: forge.Eyes}, outbox.Unreact{Reaction: forge.Eyes}},
			[]string{"React eyes", "Unreact eyes"},
		},
		"assignees": {
			[]string{"Assign"},
			[]outbox.Payload{outbox.Assign{Login: "bob"}, outbox.Assign{Login: "carol"}},
			[]string{"Assign bob", "Assign carol"},
		},
		"statuses": {
			[]string{"SetStatus"},
			[]outbox.Payload{outbox.SetStatus{Commit: "c0ffee", Context: "toryo", State: forge.StatusPending}},
			[]string{"SetStatus toryo"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withFixture(t, func(d *fixture) {
				t := d.t
				var ill atomic.Bool
				ill.Store(true)
				var taken []string
				d.forge.SetFaults(func(call dummy.Call) dummy.Fault {
					if !slices.Contains(test.methods, call.Method) {
						return dummy.None
					}
					if ill.Load() {
						return dummy.Refuse
					}
					taken = append(taken, strings.TrimSpace(call.Method+" "+call.Detail))
					return dummy.None
				})
				d.send(t)
				for i, p := range test.nice {
					d.put(t, fmt.Sprint("nice", i), p)
				}
				d.put(t, "1", outbox.Comment{Text: "first"})
				last := d.put(t, "2", outbox.Comment{Text: "second"})
				if action := d.after(t, time.Minute, last); action.Status != store.Delivered {
					t.Fatalf("the comment waits: %+v", action)
				}
				if diff := cmp.Diff([]string{"first", "second"}, d.bodies(t)); diff != "" {
					t.Error(diff)
				}
				ill.Store(false)
				d.after(t, 10*time.Minute, last)
				if diff := cmp.Diff(test.want, taken); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// The progress comment too: what people are told at the end does not wait for it.
func TestNothingWaitsForProgress(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		var ill atomic.Bool
		ill.Store(true)
		d.forge.SetFaults(func(call dummy.Call) dummy.Fault {
			if strings.Contains(call.Detail, "%") && ill.Load() {
				return dummy.Refuse
			}
			return dummy.None
		})
		d.send(t)
		d.put(t, "p1", outbox.Progress{Name: "run", Text: "10%"})
		<-time.After(time.Minute)
		d.put(t, "p2", outbox.Progress{Name: "run", Text: "90%"})
		last := d.put(t, "end", outbox.Comment{Text: "Stopped."})
		if action := d.after(t, time.Minute, last); action.Status != store.Delivered {
			t.Fatalf("the comment waits: %+v", action)
		}
		ill.Store(false)
		d.after(t, 30*time.Minute, last)
		if diff := cmp.Diff([]string{"Stopped.", "90%"}, d.bodies(t)); diff != "" {
			t.Error(diff)
		}
	})
}

// A merge that the forge does not take in time holds up nothing, and is not made later.
func TestAMergeExpires(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		var ill atomic.Bool
		ill.Store(true)
		var tries atomic.Int64
		d.forge.SetFaults(func(call dummy.Call) dummy.Fault {
			if call.Method != "MergePull" || !ill.Load() {
				return dummy.None
			}
			tries.Add(1)
			return dummy.Refuse
		})
		d.send(t)
		d.item = d.forge.AddItem(repository, task.Pull, "alice", "A roof")
		merge := d.put(t, "merge", outbox.MergePull{Head: "c1", Until: time.Now().Add(2 * time.Minute)})
		last := d.put(t, "1", outbox.Comment{Text: "first"})
		if action := d.after(t, time.Minute, last); action.Status != store.Delivered || tries.Load() == 0 {
			t.Fatalf("the comment waits, after %d attempts to merge: %+v", tries.Load(), action)
		}
		<-time.After(2 * time.Minute)
		ill.Store(false)
		if action := d.after(t, time.Hour, merge); action.Status != store.Refused || action.Reason != task.ReasonExpired {
			t.Errorf("the merge is %+v", action)
		}
	})
}
