// Package crashes has the runs that are ended at every entry of their journal and go on.
// They are many sandboxes, so that they are tested without the race detector: see
// scripts/test.
package crashes_test

import (
	"os"
	"testing"

	"github.com/toryo-dev/toryo/internal/sandbox/guest"
)

func TestMain(m *testing.M) {
	guest.Main(nil)
	os.Exit(m.Run())
}
