package testkit

import (
	"os"
	"testing"
)

// requireAll is set by make test: there, a test that cannot have what it needs
// fails instead of being left out.
const requireAll = "TORYO_TEST_REQUIRE_ALL"

// LeaveOut skips the test because of something that this machine lacks, and says
// so. Under make test, which installs and starts everything, it fails instead.
func LeaveOut(t testing.TB, missing string) {
	t.Helper()
	if os.Getenv(requireAll) != "" {
		t.Fatalf("%s is missing, and %s says that nothing may be left out", missing, requireAll)
	}
	t.Skipf("left out: %s is missing; make test installs and starts it", missing)
}
