package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// The times of make test are shown with their sum and date, the slowest package
// first.
func TestTimesOfTests(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	got, err := testRows(strings.NewReader("1.5 3 toryo/internal/a\n20 7 toryo/internal/b\n0 0 toryo/cmd\n"), at)
	want := []row{
		{"make test, all packages added up, on 2026-01-02 03:04:05", "21.5 s", ""},
		{"make test, toryo/internal/b", "20.0 s for 7 tests", ""},
		{"make test, toryo/internal/a", "1.5 s for 3 tests", ""},
		{"make test, toryo/cmd", "0.0 s for 0 tests", ""},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the rows are %q, %v", got, err)
	}
	if _, err := testRows(strings.NewReader("a while\n"), at); err == nil {
		t.Error("a line that is none is taken")
	}
}
