package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"go/version"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// target is a system that the program is built for.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "_" + t.arch }

// allTargets are the systems of a release.
var allTargets = []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}, {"darwin", "amd64"}, {"windows", "amd64"}}

func parseTargets(text string) ([]target, error) {
	var found []target
	for word := range strings.SplitSeq(text, ",") {
		system, arch, _ := strings.Cut(word, "/")
		if !slices.Contains(allTargets, target{system, arch}) {
			return nil, fmt.Errorf("there is no system %q among %v", word, allTargets)
		}
		found = append(found, target{system, arch})
	}
	return found, nil
}

// architectures are those for which there are packages and images: of Linux.
func architectures(targets []target) []string {
	var found []string
	for _, t := range targets {
		if t.os == "linux" {
			found = append(found, t.arch)
		}
	}
	return found
}

// program is one that was compiled.
type program struct {
	name    string // toryo, or toryo.exe
	content []byte
	path    string
	guest   *program // what runs in sandboxes, which is for Linux
}

const (
	mainPackage  = "./cmd/toryo"
	guestPackage = "./internal/sandbox/guest/program"
	guestName    = "toryo-guest" // guest.LinuxProgram
	// variables are set in the program: see internal/app/site/version.go. guestVersion is set
	// in both: the program takes no guest of another build.
	variables    = "github.com/toryo-dev/toryo/internal/app/site."
	guestVersion = "github.com/toryo-dev/toryo/internal/sandbox/guest.version"
)

// settings are what the compiler is told besides the system. A setting of whoever builds
// must not get into the program.
var settings = []string{"CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOEXPERIMENT=", "GOFIPS140=off", "GOAMD64=v1", "GOARM64=v8.0"}

// oldestGo is the oldest version of Go that releases are compiled with: what is fixed in the
// standard library is fixed in a release. The workflows name the same one.
const oldestGo = "go1.26.8"

// checkGo refuses to build a release with an older Go.
func checkGo(ctx context.Context, dir string) error {
	found, err := goVersion(ctx, dir)
	if err != nil {
		return err
	}
	return newEnough(found)
}

func newEnough(golang string) error {
	number, _, _ := strings.Cut(golang, " ") // experiments follow
	if version.IsValid(number) && version.Compare(number, oldestGo) < 0 {
		return fmt.Errorf("this is %s, which lacks fixes of the standard library: releases are compiled with %s or newer, which GOTOOLCHAIN=%[2]s fetches", golang, oldestGo)
	}
	return nil
}

func goVersion(ctx context.Context, dir string) (string, error) {
	said, err := output(ctx, dir, nil, "go", "env", "GOVERSION")
	return strings.TrimSpace(string(said)), err
}

func (r *release) compileAll(ctx context.Context) (err error) {
	if r.golang, err = goVersion(ctx, r.source); err != nil {
		return err
	}
	r.programs = map[target]program{}
	guests := map[string]*program{}
	for _, t := range r.targets {
		fmt.Fprintf(r.log, "compiling for %s/%s\n", t.os, t.arch)
		made := program{name: "toryo"}
		if t.os == "windows" {
			made.name += ".exe"
		}
		if made.path, made.content, err = r.compile(ctx, t, mainPackage, made.name); err != nil {
			return err
		}
		if guests[t.arch] == nil {
			guest := program{name: guestName}
			if guest.path, guest.content, err = r.compile(ctx, target{"linux", t.arch}, guestPackage, guestName); err != nil {
				return err
			}
			guests[t.arch] = &guest
		}
		made.guest = guests[t.arch]
		r.programs[t] = made
	}
	return nil
}

// compile builds a package of the commit for a system.
func (r *release) compile(ctx context.Context, t target, from, name string) (path string, content []byte, err error) {
	path = filepath.Join(r.work, "programs", t.String(), name)
	_, err = output(ctx, r.source, r.environ("GOOS="+t.os, "GOARCH="+t.arch), "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", r.linkerFlags(), "-o", path, from)
	if err != nil {
		return "", nil, err
	}
	content, err = os.ReadFile(path)
	return path, content, err
}

// modules are the Go modules in a program and its guest, with what replaces them, by path. They
// say so themselves.
func (p program) modules() ([]*debug.Module, error) {
	found := map[string]*debug.Module{}
	for _, file := range []string{p.path, p.guest.path} {
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, module := range info.Deps {
			if module.Replace != nil {
				module = module.Replace
			}
			found[module.Path] = module
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *debug.Module) int { return strings.Compare(a.Path, b.Path) }), nil
}

func (r *release) linkerFlags() string {
	return fmt.Sprintf("-s -w -buildid= -X %[1]sversion=%[2]s -X %[1]scommit=%[3]s -X %[1]sdate=%[4]s -X %[5]s=%[2]s", variables, r.version, r.commit, r.made.Format(time.RFC3339), guestVersion)
}

func (r *release) environ(more ...string) []string {
	environ := append(slices.Clone(settings), more...)
	if r.cache != "" {
		environ = append(environ, "GOCACHE="+r.cache)
	}
	return environ
}

// shells are those for which the program writes completions, and the names of the files.
var shells = []struct{ name, file string }{{"bash", "toryo.bash"}, {"zsh", "_toryo"}, {"fish", "toryo.fish"}, {"powershell", "toryo.ps1"}}

// collectDocuments gathers what archives and packages have besides the program.
func (r *release) collectDocuments(ctx context.Context) error {
	for _, name := range []string{"LICENSE", "README.md", "README.ja.md"} {
		content, err := r.read(name)
		if err != nil {
			return err
		}
		r.documents = append(r.documents, entry{name: name, content: content})
	}
	text, err := r.thirdParty(ctx)
	if err != nil {
		return err
	}
	r.documents = append(r.documents, entry{name: thirdPartyFile, content: []byte(text)})
	return r.collectCompletions(ctx)
}

// collectCompletions lets the program write them, which therefore has to run here.
func (r *release) collectCompletions(ctx context.Context) error {
	here := target{runtime.GOOS, runtime.GOARCH}
	runs, found := r.programs[here]
	if !found {
		var err error
		if runs.path, _, err = r.compile(ctx, here, mainPackage, "toryo"); err != nil {
			return err
		}
	}
	for _, shell := range shells {
		text, err := output(ctx, r.work, nil, runs.path, "completion", shell.name)
		if err != nil {
			return err
		}
		r.documents = append(r.documents, entry{name: "completions/" + shell.file, content: text})
	}
	return r.collectManual(ctx, runs.path)
}

// collectManual gathers the manual pages, which the program writes.
func (r *release) collectManual(ctx context.Context, program string) error {
	folder := filepath.Join(r.work, "man")
	if _, err := output(ctx, r.work, nil, program, "man", folder); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(folder, "*.1"))
	if err != nil {
		return err
	}
	if len(pages) == 0 {
		return errors.New("toryo man has written no pages")
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		r.documents = append(r.documents, entry{name: "man/" + filepath.Base(page), content: text})
	}
	return nil
}

// document is one of those by its name.
func (r *release) document(name string) []byte {
	at := slices.IndexFunc(r.documents, func(e entry) bool { return e.name == name })
	return r.documents[at].content
}
