package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// release is one that is being built.
type release struct {
	options
	made   time.Time // when the commit was made; every time in the release is this one
	golang string    // the version of Go

	work   string // a temporary folder
	source string // in it: the files of the commit
	making string // in it: the folder that becomes the release

	programs  map[target]program
	terms     map[string]terms // of Go modules, by path
	documents []entry          // what archives and packages have besides the program
	debian    map[string][]debianPackage
	nfpm      string // the program that has made the packages

	files []file
}

// file is one of the release.
type file struct {
	name   string
	digest string // SHA-256
}

func (r *release) digests() map[string]string {
	all := map[string]string{}
	for _, one := range r.files {
		all[one.name] = one.digest
	}
	return all
}

// build makes a release. Its folder appears when it is whole.
func build(ctx context.Context, o options) (r *release, err error) {
	work, err := os.MkdirTemp("", "toryo-dist-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	r = &release{options: o, work: work, source: filepath.Join(work, "source"), making: filepath.Join(work, "release")}
	for _, step := range []func(context.Context) error{
		r.identify, r.export, r.compileAll, r.collectDocuments, r.writeArchives, r.writePackages, r.writeChart, r.writeImages,
		r.writeBills, r.writeNotes, r.writeProvenance, r.writeChecksums,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	if r.out == "" {
		r.out = filepath.Join(r.root, "dist", r.version)
	}
	if err := r.place(); err != nil {
		return nil, err
	}
	fmt.Fprintf(r.log, "%d files of version %s are in %s\n", len(r.files), r.version, r.out)
	return r, nil
}

// place moves the release to its folder, in the place of what is there. A folder that holds
// something else than a release is left alone.
func (r *release) place() error {
	if there, err := os.Lstat(r.out); err == nil && !there.IsDir() {
		return fmt.Errorf("%s is no folder: remove it, or choose another with -o", r.out)
	}
	if found, err := os.ReadDir(r.out); err == nil && len(found) > 0 {
		if _, err := os.Stat(filepath.Join(r.out, checksumFile)); err != nil {
			return fmt.Errorf("%s holds something else than a release: remove it, or choose another folder with -o", r.out)
		}
	}
	beside := filepath.Dir(r.out)
	if err := os.MkdirAll(beside, 0o755); err != nil { //nolint:gosec // a release is for everybody
		return err
	}
	// The temporary folder may be on another disk, from which nothing can be moved at once.
	whole, err := os.MkdirTemp(beside, ".release-")
	if err != nil {
		return err
	}
	err = errors.Join(os.Chmod(whole, 0o755), os.CopyFS(whole, os.DirFS(r.making))) //nolint:gosec // as above
	if err == nil {
		err = errors.Join(os.RemoveAll(r.out), os.Rename(whole, r.out))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(whole))
	}
	return nil
}

// identify finds out what is built: the commit, its time and the version.
func (r *release) identify(ctx context.Context) error {
	commit, err := r.git(ctx, "rev-parse", "--verify", r.commit+"^{commit}")
	if err != nil {
		return err
	}
	r.commit = commit
	when, err := r.git(ctx, "show", "--no-patch", "--format=%cI", commit)
	if err != nil {
		return err
	}
	made, err := time.Parse(time.RFC3339, when)
	if err != nil {
		return err
	}
	r.made = made.UTC()
	if r.origin == "" {
		r.origin = r.findOrigin(ctx)
	}
	if r.version == "" {
		if r.version, err = r.findVersion(ctx); err != nil {
			return err
		}
	}
	if !isVersion(r.version) {
		return fmt.Errorf("%q is no version such as 0.1.0 or 0.1.0-rc.1", r.version)
	}
	if state, err := r.git(ctx, "status", "--porcelain"); err == nil && state != "" {
		fmt.Fprintf(r.log, "what is not committed is not in the release, which is built from %s\n", commit)
	}
	return nil
}

// findVersion is the tag of the commit, or what the changelog prepares with a mark that it is
// not released.
func (r *release) findVersion(ctx context.Context) (string, error) {
	if tag, err := r.git(ctx, "describe", "--exact-match", "--tags", "--match", "v[0-9]*", r.commit); err == nil {
		return strings.TrimPrefix(tag, "v"), nil
	}
	text, err := r.git(ctx, "show", r.commit+":"+changelogFile)
	if err != nil {
		return "", err
	}
	next, err := newestVersion(text)
	if err != nil {
		return "", err
	}
	return next + "-dev.g" + r.commit[:12], nil
}

// findOrigin is the address of the remote origin, if everybody can use it. What it has before
// the host may be a secret.
func (r *release) findOrigin(ctx context.Context) string {
	text, err := r.git(ctx, "remote", "get-url", "origin")
	if err != nil {
		return ""
	}
	address, err := url.Parse(text)
	if err != nil || address.Scheme != "https" || address.Host == "" {
		return ""
	}
	return "https://" + address.Host + strings.TrimSuffix(address.Path, ".git")
}

// export writes the files of the commit to a folder of their own.
func (r *release) export(ctx context.Context) error {
	packed, err := output(ctx, r.root, nil, "git", "archive", "--format=tar", r.commit)
	if err != nil {
		return err
	}
	for _, dir := range []string{r.source, r.making} {
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a release is for everybody
			return err
		}
	}
	return unpack(packed, r.source)
}

// unpack writes files and folders of an archive below a folder. The repository has nothing
// else that a build needs.
func unpack(packed []byte, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // files are closed by themselves
	archive := tar.NewReader(bytes.NewReader(packed))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch header.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(filepath.FromSlash(strings.TrimSuffix(header.Name, "/")), 0o755)
		case tar.TypeReg:
			var content []byte
			if content, err = io.ReadAll(archive); err == nil {
				err = root.WriteFile(filepath.FromSlash(header.Name), content, header.FileInfo().Mode().Perm())
			}
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", header.Name, err)
		}
	}
}

func (r *release) git(ctx context.Context, arguments ...string) (string, error) {
	said, err := output(ctx, r.root, nil, "git", arguments...)
	return strings.TrimSpace(string(said)), err
}

// mostComplaint is how much of what a failed command says is shown: its end.
const mostComplaint = 4000

// output runs a command and returns what it prints. What it complains of is in the error.
func output(ctx context.Context, dir string, environ []string, name string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir, command.Env = dir, append(os.Environ(), environ...)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	said, err := command.Output()
	if err != nil {
		text := complaint.String()
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(arguments, " "), err, text[max(0, len(text)-mostComplaint):])
	}
	return said, nil
}

// read is a file of the commit.
func (r *release) read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(r.source, filepath.FromSlash(name)))
}

// add writes a file of the release.
func (r *release) add(name string, content []byte) error {
	if err := os.WriteFile(filepath.Join(r.making, name), content, 0o644); err != nil { //nolint:gosec // a release is for everybody
		return err
	}
	r.files = append(r.files, file{name, digestOf(content)})
	fmt.Fprintf(r.log, "%s (%.1f MB)\n", name, float64(len(content))/1e6)
	return nil
}

// named begins with the name and the version, as every file of the release does.
func (r *release) named(rest string) string { return "toryo_" + r.version + "_" + rest }

func sortedFiles(files []file) []file {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
