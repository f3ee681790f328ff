package notify

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// Trouble that is over soon, as after a restart of the server, is not told of.
func TestTroubleThatIsOverSoon(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	server := o.server()
	offline := task.Need{Key: "agent/a/offline", Kind: task.NeedAgent, Reason: task.ReasonAgentsSilent, Subject: "mill"}
	o.set(offline, question(1))
	must(t, server.Deliver(t.Context()))
	o.at(noon.Add(settling / 2))
	must(t, o.server().Deliver(t.Context()))
	o.set(question(1))
	must(t, server.Deliver(t.Context()))
	o.want("answer/1")
	o.set(question(1), task.Need{Key: "agent/b/offline", Kind: task.NeedAgent, Reason: task.ReasonAgentsSilent, Subject: "forge"})
	must(t, server.Deliver(t.Context()))
	o.at(noon.Add(settling/2 + settling))
	must(t, server.Deliver(t.Context()))
	o.want("answer/1, agent/b/offline")
}

// steps returns a function that lets time go by and then looks at needs.
func (o *office) steps() func(by time.Duration, needs ...task.Need) {
	server, now := o.server(), noon
	return func(by time.Duration, needs ...task.Need) {
		o.t.Helper()
		now = now.Add(by)
		o.at(now)
		o.set(needs...)
		must(o.t, server.Deliver(o.t.Context()))
	}
}

// Trouble that comes back has to last again before it is told of, whether it was tried to tell of
// it before or not; and what was told is told again only after an hour.
func TestTroubleThatComesBack(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	fault := task.Need{Key: "server/data_folder", Kind: task.NeedServer, Subject: "data_folder"}
	step := o.steps()
	step(0, fault)
	step(5 * time.Second)
	step(10*time.Minute, fault)
	step(5 * time.Second)
	o.want("") // neither has lasted
	step(10*time.Minute, fault)
	o.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	step(settling, fault)
	o.answer = nil
	step(time.Second)
	step(10*time.Minute, fault)
	o.want("")
	step(settling, fault)
	o.want("server/data_folder")
	for range 8 { // it comes and goes, for 56 minutes
		step(4 * time.Minute)
		step(time.Minute, fault)
		step(2*settling, fault)
	}
	o.want("server/data_folder")
	step(4 * time.Minute)
	step(0, fault)
	o.want("server/data_folder") // the hour is over, but it has to last
	step(settling, fault)
	o.want("server/data_folder, server/data_folder")
	step(time.Second)
	step(keptOver + keptOver/2)
	step(time.Second, fault)
	step(settling, fault)
	o.want(strings.Join(slices.Repeat([]string{"server/data_folder"}, 3), ", "))
}

// Trouble that comes back soon after it was told, and stays, is told of again, once, when the hour
// is over. What else waits is told of meanwhile.
func TestTroubleThatComesBackAndStays(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	step := o.steps()
	offline := task.Need{Key: "agent/a/offline", Kind: task.NeedAgent, Reason: task.ReasonAgentsSilent, Subject: "mill"}
	step(0, offline)
	step(settling, offline)
	o.want("agent/a/offline")
	step(time.Minute)
	step(time.Minute, offline)
	step(20*time.Minute, offline, question(1))
	o.want("agent/a/offline, answer/1")
	for range 20 { // nearly an hour
		step(110*time.Second, offline, question(1))
	}
	o.want("agent/a/offline, answer/1")
	o.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	step(2*time.Minute, offline, question(1))
	o.answer = nil
	for range 240 {
		step(30*time.Second, offline, question(1))
	}
	o.want("agent/a/offline, answer/1, agent/a/offline")
	if len(o.received) != 3 || o.received[0].ID == o.received[2].ID {
		t.Error("a receiver takes the second message for the first")
	}
	// What was told long ago is told again as soon as it has lasted.
	step(time.Minute, question(1))
	step(time.Minute, offline, question(1))
	o.want("agent/a/offline, answer/1, agent/a/offline")
	step(settling, offline, question(1))
	step(settling, offline, question(1))
	o.want("agent/a/offline, answer/1, agent/a/offline, agent/a/offline")
}

// A failure that is not among those that are listed is not over: it is told of once.
func TestFailuresThatAreNotListed(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	server := o.server()
	failure := func(key string) task.Need {
		return task.Need{Key: "failure/" + key + "/1", Kind: task.NeedFailure, Reason: task.ReasonRunFailed}
	}
	o.set(failure("a"), failure("b"), question(1))
	must(t, server.Deliver(t.Context()))
	o.cut = true
	o.set(failure("b"), failure("c"))
	must(t, server.Deliver(t.Context()))
	for i := range 3 {
		o.at(noon.Add(time.Duration(i+1) * 2 * keptOver))
		must(t, server.Deliver(t.Context()))
	}
	o.cut = false
	o.set(failure("a"), failure("b"))
	must(t, server.Deliver(t.Context()))
	o.want("failure/a/1 failure/b/1 answer/1, failure/c/1")
}

// Failures are not remembered for ever while there are too many to list them all.
func TestManyFailuresAreForgotten(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.cut = true
	step := o.steps()
	failure := func(day int) task.Need {
		return task.Need{Key: fmt.Sprintf("failure/%02d/1", day), Kind: task.NeedFailure, Reason: task.ReasonRunFailed}
	}
	for day := range 30 {
		step(22*time.Hour, failure(day))
		step(2*time.Hour, failure(day))
	}
	known, err := o.store.ListNotifications(t.Context(), "team")
	must(t, err)
	if len(known) < 8 || len(known) > 10 {
		t.Errorf("%d failures are remembered", len(known))
	}
	if len(o.received) != 30 {
		t.Errorf("there were %d messages", len(o.received))
	}
}
