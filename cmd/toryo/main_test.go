package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// built is the program as make build makes it, and what the linker says about who
// needs what. Linking takes most of the time of these tests, so they share it.
var built = sync.OnceValues(func() (result struct{ program, said []byte }, err error) {
	dir, err := os.MkdirTemp("", "toryo")
	if err != nil {
		return result, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program := filepath.Join(dir, "toryo")
	// It ends by itself, and does not belong to the test that happens to come first.
	command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", "grpcnotrace", "-ldflags=-w -dumpdep", "-o", program, ".") //nolint:noctx // see above
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if result.said, err = command.CombinedOutput(); err != nil {
		return result, fmt.Errorf("%w\n%s", err, result.said)
	}
	result.program, err = os.ReadFile(program)
	return result, err
})

// The program is one static binary: it asks the machine for no other file.
func TestBinaryIsStatic(t *testing.T) {
	t.Parallel()
	result, err := built()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := elf.NewFile(bytes.NewReader(result.program))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range binary.Progs {
		if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
			t.Errorf("the binary wants a loader: it has a part %s", part.Type)
		}
	}
}

// Code that looks up methods by name at run time makes the linker keep every
// method of every type, which is a third of the binary's size.
func TestLinkerCanDropMethods(t *testing.T) {
	t.Parallel()
	result, err := built()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(result.said, []byte("main.main")) {
		t.Fatal("the linker does not say who needs what")
	}
	if bytes.Contains(result.said, []byte("<ReflectMethod>")) {
		t.Error("something looks up methods by name; go build -tags grpcnotrace -ldflags=-dumpdep tells who")
	}
}
