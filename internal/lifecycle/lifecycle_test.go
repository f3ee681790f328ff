package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
)

type key struct{}

func TestGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var group lifecycle.Group
		ended := 0
		wait := func(ctx context.Context) {
			if ctx.Value(key{}) != "kept" {
				t.Error("the values of the context are lost")
			}
			<-ctx.Done()
			<-time.After(time.Minute) // of the bubble's clock: it takes its time
			ended++
		}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "kept"))
		group.Start(ctx, wait)
		group.Start(ctx, wait) // does nothing
		cancel()
		synctest.Wait()
		if ended != 0 {
			t.Error("it ended with the context of Start")
		}
		group.Stop()
		if ended != 1 {
			t.Errorf("%d functions have ended after Stop, want 1", ended)
		}
		group.Stop()
		group.Start(t.Context(), func(context.Context) { t.Error("it was started after Stop") })
	})
	var unused lifecycle.Group
	unused.Stop()
}

func TestEvery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		begun, calls := time.Now(), []time.Duration(nil)
		lifecycle.Every(ctx, time.Minute, func(context.Context) {
			if calls = append(calls, time.Since(begun)); len(calls) == 3 {
				cancel()
			}
		})
		if len(calls) != 3 || calls[0] != 0 || calls[2] != 2*time.Minute {
			t.Errorf("it was called after %v", calls)
		}
	})
}

func TestSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		begun := time.Now()
		if err := lifecycle.Sleep(ctx, time.Hour); err != nil || time.Since(begun) != time.Hour {
			t.Errorf("it slept for %s: %v", time.Since(begun), err)
		}
		cancel()
		if err := lifecycle.Sleep(ctx, time.Hour); err == nil || time.Since(begun) != time.Hour {
			t.Error("it slept although the context has ended")
		}
	})
}

func TestMutex(t *testing.T) {
	t.Parallel()
	m := lifecycle.NewMutex()
	if err := m.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	ended, end := context.WithCancelCause(t.Context())
	end(gone)
	if err := m.Lock(ended); !errors.Is(err, gone) {
		t.Errorf("while it is held: %v", err)
	}
	taken := make(chan error)
	go func() { taken <- m.Lock(t.Context()) }()
	m.Unlock()
	if err := <-taken; err != nil {
		t.Errorf("when it is free: %v", err)
	}
	m.Unlock()
}
