package testkit

import "os"

// Guest is the program that serves as the inside of sandboxes, for engines in tests; empty
// means the test binary itself. make test builds it once (internal/sandbox/guest/program): with
// the race detector a test binary takes half a second to start, twice for each sandbox.
func Guest() string { return os.Getenv("TORYO_TEST_GUEST") }
