package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPageIsFresh(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "state_machine.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != render() {
		t.Fatal("docs/state_machine.md is stale: run go generate ./...")
	}
}
