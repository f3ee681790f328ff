package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What a build may cost: bytes of the program, and modules of others in it.
const (
	largest     = 60_000_000
	mostModules = 90
)

// TestProgram builds the program once, as make build does, and looks at what came out.
func TestProgram(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "toryo")
	command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -dumpdep", "-o", program, ".")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%.2000s", err, said)
	}
	isStatic(t, program)
	isSmall(t, program, said)
}

// The program is one static binary: it asks the machine for no other file.
func isStatic(t *testing.T, program string) {
	t.Helper()
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

// isSmall looks at size and modules, and for code that looks up methods by name at
// run time: it makes the linker keep every method of every type.
func isSmall(t *testing.T, program string, linker []byte) {
	t.Helper()
	if !bytes.Contains(linker, []byte("main.main")) {
		t.Fatal("the linker does not say who needs what")
	}
	if bytes.Contains(linker, []byte("<ReflectMethod>")) {
		t.Error("something looks up methods by name; go build -ldflags=-dumpdep tells who")
	}
	file, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes, %d modules", file.Size(), len(info.Deps))
	if file.Size() >= largest {
		t.Errorf("the program has %d bytes, and may have less than %d", file.Size(), largest)
	}
	if len(info.Deps) == 0 || len(info.Deps) >= mostModules {
		t.Errorf("the program has %d modules of others, and may have less than %d", len(info.Deps), mostModules)
	}
}
