package environment

import "testing"

// A number is a status of HTTP where the line says so, and not in any log.
func TestNumbersThatAreNoStatus(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"compiled 522 modules", "ERROR 504 passed", "exited with status 50", "job status: 502 tasks done, build failed", "Error 502 of 900 assertions",
		"got error 429 in row 3", "error 404 rows were not migrated", "assertion failed (404)", "processed 511 files", "error: 511 tests failed",
		"the server answered: status 505", "response status: 508 from https://example.org/a", "fetch failed with status 509",
	} {
		if got := Classify([]byte(line), 1); got.Kind != Unknown {
			t.Errorf("%q is taken for %s", line, got.Kind)
		}
	}
	for line, want := range map[string]Kind{
		"error: the server answered: status 503": Server, "HTTP 503": Server, "Error 429 while fetching https://example.org/a.tgz": Server,
		"522 Origin Connection Time-out": Server, "2020-07-08 13:34:46 ERROR 404: Not Found.": PackageNotFound, "ERROR 503: Service Unavailable.": Server, "Download of x failed: error 404": PackageNotFound, "(404) https://example.org/simple/nope": PackageNotFound,
	} {
		if got := Classify([]byte(line), 1); got.Kind != want {
			t.Errorf("%q is taken for %s, want %s", line, got.Kind, want)
		}
	}
}
