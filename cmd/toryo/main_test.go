package main

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// build builds the program as it is released, without symbols left out, and
// returns its path and what the linker said.
func build(t *testing.T, flags ...string) (program string, said []byte) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "toryo")
	args := append([]string{"build", "-tags", "grpcnotrace", "-o", program}, flags...)
	command := exec.CommandContext(t.Context(), "go", append(args, ".")...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return program, said
}

// The program is one static binary: it asks the machine for no other file.
func TestBinaryIsStatic(t *testing.T) {
	t.Parallel()
	program, _ := build(t)
	binary, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = binary.Close() }()
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
	if _, said := build(t, "-ldflags=-dumpdep"); bytes.Contains(said, []byte("<ReflectMethod>")) {
		t.Error("something looks up methods by name; go build -tags grpcnotrace -ldflags=-dumpdep tells who")
	}
}
