package limit

import (
	"fmt"
	"testing"
	"time"
)

// Callers who have been quiet are forgotten when there are too many.
func TestQuietCallersAreForgotten(t *testing.T) {
	t.Parallel()
	now := time.Now()
	limited := NewRate(2, 8)
	for i := range maxCallers + 10 {
		limited.Allow(fmt.Sprint(i), now)
		if i == maxCallers/2 {
			now = now.Add(2 * quiet)
		}
	}
	if kept := len(limited.callers); kept > maxCallers || kept < maxCallers/4 {
		t.Errorf("%d callers are remembered", kept)
	}
}
