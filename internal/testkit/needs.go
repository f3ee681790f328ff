package testkit

import (
	"os"
	"strings"
	"testing"
)

// requireAll is set by make test and make test-all: there, a test that cannot have
// what it needs fails instead of being left out.
const requireAll = "TORYO_TEST_REQUIRE_ALL"

// Tests that need a server which is compiled from source have names that begin with
// one of these. scripts/test selects by these names: make test runs all other tests,
// and make test-all runs these too. So every test is in exactly one of the two parts.
const (
	onGitea      = "TestOnGitea"
	onKubernetes = "TestOnKubernetes"
)

// LeaveOut skips the test because of something that this machine lacks, and says
// so. Under make test, which installs and starts everything, it fails instead.
func LeaveOut(t testing.TB, missing string) {
	t.Helper()
	if os.Getenv(requireAll) != "" {
		t.Fatalf("%s is missing, and %s says that nothing may be left out", missing, requireAll)
	}
	t.Skipf("left out: %s is missing; make %s installs and starts it", missing, makeTarget(t.Name()))
}

// makeTarget is the target of the Makefile that runs the test.
func makeTarget(test string) string {
	if strings.HasPrefix(test, onGitea) || strings.HasPrefix(test, onKubernetes) {
		return "test-all"
	}
	return "test"
}

// wantPrefix fails a test that uses a compiled server without saying so in its name,
// whether the server is there or not. Benchmarks are in neither part.
func wantPrefix(t testing.TB, prefix string) {
	t.Helper()
	if misnamed(t.Name(), prefix) {
		t.Fatalf("this test uses a server that make test does not have: its name must begin with %s, so that make test-all runs it", prefix)
	}
}

func misnamed(test, prefix string) bool {
	return strings.HasPrefix(test, "Test") && !strings.HasPrefix(test, prefix)
}
