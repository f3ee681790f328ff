package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// cost is what a command took: on the clock, and of all processors together, its
// children included.
type cost struct{ wall, processor time.Duration }

func (c cost) String() string {
	return fmt.Sprintf("%.1f s, %.1f s of processor", c.wall.Seconds(), c.processor.Seconds())
}

func (c cost) plus(other cost) cost { return cost{c.wall + other.wall, c.processor + other.processor} }

// costOf runs a command to its end, and returns what it said too.
func costOf(command *exec.Cmd) (cost, string, error) {
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	begun := time.Now()
	if err := command.Run(); err != nil {
		return cost{}, "", fmt.Errorf("%s: %w: %s", strings.Join(command.Args, " "), err, said.String())
	}
	used := command.ProcessState
	return cost{time.Since(begun), used.UserTime() + used.SystemTime()}, said.String(), nil
}

// measureFirstDay does what someone does who has just cloned the repository: build
// the program with nothing in the caches, and watch the demo. It builds in folders
// of its own.
func measureFirstDay(ctx context.Context, folder string) ([]row, error) {
	program := filepath.Join(folder, "first", "toryo")
	environ := append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+os.Getenv("GOFLAGS")+" -modcacherw", // or the modules could not be removed
		"GOCACHE="+filepath.Join(folder, "build-cache"), "GOMODCACHE="+filepath.Join(folder, "modules"))
	step := func(name string, args ...string) (cost, error) {
		command := exec.CommandContext(ctx, name, args...)
		command.Env = environ
		took, _, err := costOf(command)
		return took, err
	}
	modules, err := step("go", "mod", "download")
	if err != nil {
		return nil, err
	}
	build, err := step("go", "build", "-o", program, "./cmd/toryo")
	if err != nil {
		return nil, err
	}
	demo, err := step(program, "demo")
	if err != nil {
		return nil, err
	}
	stripped := program + "-stripped"
	if _, err := step("go", "build", "-ldflags", "-s -w", "-o", stripped, "./cmd/toryo"); err != nil {
		return nil, err
	}
	sizes, err := sizeRows(program, stripped)
	return append([]row{
		{"first command from empty caches, in all", modules.plus(build).plus(demo).String(), ""},
		{"of that, fetching every module of go.mod", modules.String(), ""},
		{"of that, compiling", build.String(), ""},
		{"of that, the demo", demo.String(), ""},
	}, sizes...), err
}

// sizeRows says what the program weighs and what it is made of.
func sizeRows(program, stripped string) ([]row, error) {
	plain, err := os.Stat(program)
	if err != nil {
		return nil, err
	}
	small, err := os.Stat(stripped)
	if err != nil {
		return nil, err
	}
	built, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	listed, err := os.ReadFile("go.mod")
	if err != nil {
		return nil, err
	}
	return []row{
		{"size of go build ./cmd/toryo, and stripped", fmt.Sprintf("%.1f MB, %.1f MB", float64(plain.Size())/1e6, float64(small.Size())/1e6), ""},
		{"modules in the program, besides its own", fmt.Sprint(len(built.Deps)), ""},
		{"lines of go.mod", fmt.Sprint(bytes.Count(listed, []byte("\n"))), ""},
	}, nil
}
