package kubernetes_test

import (
	"context"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
)

// The processes that serve a pod are the same user's as its commands. Those can see them,
// but nothing of what they have open: what is written to the relay's output is taken for
// the guest's.
//
//nolint:paralleltest // the cluster is shared with tests that break it
func TestOnKubernetesServantsAreHidden(t *testing.T) {
	box, err := newEngine(t, config(t, noGate)).Start(t.Context(), sandbox.Spec{Owner: "hidden", Image: image, Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Stop(context.WithoutCancel(t.Context())) })
	result, err := box.Run(t.Context(), sandbox.Command{Timeout: time.Minute, Text: `for p in /proc/[0-9]*; do
		for name in guest relay reserve; do
			tr '\0' ' ' <$p/cmdline 2>/dev/null | grep -q "sandbox-$name " || continue
			if ls $p/fd >/dev/null 2>&1 || head -c 1 $p/environ >/dev/null 2>&1; then echo open $name; else echo hidden $name; fi
		done; :
	done | sort`})
	if want := "hidden guest\nhidden relay\nhidden reserve\n"; err != nil || string(result.Stdout) != want {
		t.Errorf("commands see %q, %v", result.Log, err)
	}
}

// stopStarts ends the guest's reserve and stops the next process before it has begun: the
// thread of the guest that starts it waits for it then. The shell forks nothing
// meanwhile, so that the number of that process is known.
const stopStarts = `exec 2>/dev/null
while :; do
	for p in /proc/[0-9]*; do
		{ read -r -d '' program; read -r -d '' name; } <$p/cmdline
		[ "$name" = sandbox-reserve ] || continue
		read -r _ _ _ _ last </proc/loadavg
		kill -9 ${p#/proc/}
		for ((i=0;i<20000;i++)); do
			kill -STOP $((last+1)) && echo stopped >>stopped && break
		done; :
	done; :
done
`

// Code that stops what the guest starts does not keep the guest from watching the limits.
//
//nolint:paralleltest // the cluster is shared with tests that break it
func TestOnKubernetesStoppedStarts(t *testing.T) {
	box, err := newEngine(t, config(t, noGate)).Start(t.Context(), sandbox.Spec{Owner: "stopped", Image: image, Workspace: t.TempDir(),
		Limits: sandbox.Limits{Memory: 300 << 20, Processes: 100, CPUs: 2, Disk: 32 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Stop(context.WithoutCancel(t.Context())) })
	run := func(text string) sandbox.Result {
		result, err := box.Run(t.Context(), sandbox.Command{Text: text, Timeout: 30 * time.Second})
		if err != nil {
			t.Fatalf("%.40s: %q, %v", text, result.Log, err)
		}
		return result
	}
	run("cat >stop.sh <<'END'\n" + stopStarts + "END\n(setsid bash stop.sh >/dev/null </dev/null &)\nuntil [ -s stopped ]; do sleep 0.1; done")
	for range 3 { // the first ones may be stopped themselves, until their time is up
		if result := run("head -c 20000000 /dev/zero >x; head -c 20000000 /dev/zero >y; sleep 20"); result.Exceeded == sandbox.DiskLimit {
			return
		}
		run("rm -f x y")
	}
	t.Error("no command was killed for the limit of disk")
}
