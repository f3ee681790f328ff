package access_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
)

// TestOthersDoNotEndAWait: someone who fails with very many other names does not make
// the limiter forget one that failed more often.
func TestOthersDoNotEndAWait(t *testing.T) {
	t.Parallel()
	limiter := access.Limiter{} // every failure has a consequence
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for range 12 {
		limiter.Failed(now, "alice")
	}
	before := limiter.Wait(now, "alice")
	for i := range 11_000 {
		limiter.Failed(now, fmt.Sprint("nobody", i))
	}
	if after := limiter.Wait(now, "alice"); before == 0 || after != before {
		t.Errorf("the wait is %v after the failures of others, want %v", after, before)
	}
}
