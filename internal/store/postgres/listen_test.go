package postgres

import (
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// Whoever listens is told that anything may have happened when the connection is
// there again, and hears what comes after.
func TestListeningGoesOnAfterTheConnectionWasLost(t *testing.T) {
	t.Parallel()
	address := testkit.Postgres(t)
	sender := opened(t, address)
	defer func() { _ = sender.Close() }()
	between, through := newRelay(t, address)
	listener := opened(t, through)
	defer func() { _ = listener.Close() }()
	heard := make(chan store.Notice, 100)
	stop := listener.Listen(func(n store.Notice) { heard <- n })
	defer stop()
	next := func() store.Notice {
		select {
		case n := <-heard:
			return n
		case <-time.After(5 * time.Minute):
			t.Fatal("nothing was heard")
			return store.Notice{}
		}
	}
	for range 2 { // at once, and when the connection stands
		if n := next(); n != (store.Notice{}) {
			t.Fatalf("heard %+v first", n)
		}
	}
	between.set(true)
	if err := sender.Notify(t.Context(), store.Notice{Topic: store.BellRung, Subject: "missed"}); err != nil {
		t.Fatal(err)
	}
	between.set(false)
	if n := next(); n != (store.Notice{}) {
		t.Fatalf("heard %+v after the gap", n)
	}
	after := store.Notice{Topic: store.BellRung, Subject: "after"}
	if err := sender.Notify(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	if n := next(); n != after {
		t.Fatalf("heard %+v", n)
	}
}
