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
		for name in guest relay; do
			tr '\0' ' ' <$p/cmdline 2>/dev/null | grep -q "sandbox-$name " || continue
			if ls $p/fd >/dev/null 2>&1 || head -c 1 $p/environ >/dev/null 2>&1; then echo open $name; else echo hidden $name; fi
		done; :
	done | sort`})
	if want := "hidden guest\nhidden relay\n"; err != nil || string(result.Stdout) != want {
		t.Errorf("commands see %q, %v", result.Log, err)
	}
}
