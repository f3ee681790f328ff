package testkit

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Golden compares a text with a file that has what it should be. With UPDATE_GOLDEN=1 in
// the environment the file is written instead; git then shows what is different.
func Golden(t testing.TB, path, got string) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
