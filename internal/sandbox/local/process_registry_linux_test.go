package local_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/local"
)

// One sandbox that cannot be ended must not keep the others.
func TestReapGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	const many = 12
	failure := errors.New("its control group cannot be removed")
	registry := local.ProcessRegistry{Dir: t.TempDir(), Ended: func(info sandbox.Info) error {
		if info.ID == "5" {
			return failure
		}
		return nil
	}}
	for i := range many {
		id := fmt.Sprint(i)
		dir := filepath.Join(registry.Dir, id)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := registry.Record(dir, sandbox.Info{ID: id, Owner: "me"}, 0); err != nil {
			t.Fatal(err)
		}
	}
	reaped, err := registry.Reap("me", func(sandbox.Info) bool { return false })
	if !errors.Is(err, failure) || reaped != many-1 {
		t.Errorf("%d were reaped, %v", reaped, err)
	}
	left, err := registry.List("me")
	if err != nil || len(left) != 1 || left[0].ID != "5" {
		t.Errorf("left are %v, %v", left, err)
	}
}
