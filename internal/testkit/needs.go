package testkit

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// requireAll is set by make test and make test-all: there, a test that cannot have
// what it needs fails instead of being left out.
const requireAll = "TORYO_TEST_REQUIRE_ALL"

// Tests that need a server which is compiled from source have names that begin with
// one of these. scripts/test selects by these names: make test runs all other tests,
// and make test-rest runs these. Those that need the tools of releases are run by make
// test-dist. So every test is in exactly one of the three parts.
const (
	onGitea      = "TestOnGitea"
	onKubernetes = "TestOnKubernetes"
	onRelease    = "TestOnRelease"
)

// forRelease is set by make test-dist.
const forRelease = "TORYO_TEST_RELEASE"

// Release leaves the test out unless it is run by make test-dist, which has the tools of
// releases: they are compiled from what is fetched from elsewhere.
func Release(t testing.TB) {
	t.Helper()
	wantPrefix(t, onRelease)
	if os.Getenv(forRelease) == "" {
		LeaveOut(t, "the tools of releases ("+forRelease+")")
	}
}

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
	switch {
	case strings.HasPrefix(test, onGitea), strings.HasPrefix(test, onKubernetes):
		return "test-rest"
	case strings.HasPrefix(test, onRelease):
		return "test-dist"
	}
	return "test"
}

// wantPrefix fails a test that uses what make test does not have without saying so in its
// name, whether that is there or not. Benchmarks are in no part.
func wantPrefix(t testing.TB, prefixes ...string) {
	t.Helper()
	if misnamed(t.Name(), prefixes...) {
		t.Fatalf("this test uses something that make test does not have: its name must begin with %s, so that make test-all runs it", strings.Join(prefixes, " or "))
	}
}

func misnamed(test string, prefixes ...string) bool {
	return strings.HasPrefix(test, "Test") && !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(test, prefix) })
}
