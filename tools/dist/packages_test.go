package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/testkit"
)

// repository is the root of this one.
func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// byHandRelease is one of the files in the working tree, so that a test sees what is not
// committed.
func byHandRelease(t *testing.T, targets ...target) *release {
	t.Helper()
	dir := t.TempDir()
	r := &release{
		options: options{root: repository(t), version: "0.3.0-rc.1", commit: strings.Repeat("0", 40), targets: targets, packages: true, log: t.Output()},
		made:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), work: dir, source: repository(t), making: filepath.Join(dir, "release"),
		programs: map[target]program{},
	}
	r.out = r.making
	if err := writeFile(filepath.Join(r.making, "first"), nil); err != nil {
		t.Fatal(err)
	}
	return r
}

// The packages have the program, the units that name it where it is, and scripts.
func TestOnReleasePackages(t *testing.T) {
	t.Parallel()
	testkit.Release(t)
	r := byHandRelease(t, target{"linux", "arm64"})
	r.programs[r.targets[0]] = program{name: "toryo", content: []byte("the program"), guest: &program{name: guestName, content: []byte("the guest")}}
	for _, name := range []string{"LICENSE", thirdPartyFile, "README.md", "completions/toryo.bash", "completions/_toryo", "completions/toryo.fish"} {
		r.documents = append(r.documents, entry{name: name, content: []byte("words\n")})
	}
	if err := r.writePackages(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := r.digests()
	r.files = nil
	if err := r.writePackages(t.Context()); err != nil {
		t.Fatal(err)
	}
	if second := r.digests(); len(first) != 2 || !maps.Equal(first, second) {
		t.Errorf("the packages are %v, and made again %v", first, second)
	}
	tools := map[string]*debug.Module{}
	if err := r.addPackager(tools); err != nil || len(tools) != 1 {
		t.Errorf("%v: they were made by %v", err, tools)
	}
	for purl, tool := range tools {
		if !strings.HasPrefix(purl, "pkg:golang/github.com/goreleaser/nfpm/v2@v2.") || tool.Sum == "" {
			t.Errorf("they were made by %s %s", purl, tool.Sum)
		}
	}
	want := []string{"/etc/toryo/agent.yaml", "/usr/bin/toryo", "/usr/bin/toryo-guest", "/usr/lib/systemd/system/toryo-agent.service", "/usr/lib/systemd/system/toryo.service",
		"/usr/lib/systemd/system/toryo-up.service",
		"/usr/share/bash-completion/completions/toryo"}
	t.Run("deb", func(t *testing.T) {
		t.Parallel()
		members := arMembers(t, fileOf(t, r, "toryo_0.3.0-rc.1_linux_arm64.deb"))
		has(t, tarFiles(t, members["data.tar.gz"]), append(slices.Clone(want), "/usr/share/zsh/vendor-completions/_toryo"))
		control := tarFiles(t, members["control.tar.gz"])
		for _, line := range []string{"Package: toryo", "Version: 0.3.0~rc.1", "Architecture: arm64", "Depends: git, ca-certificates, passwd", "Recommends: bubblewrap"} {
			if !strings.Contains(control["/control"], line+"\n") && !strings.Contains(control["/control"], line+"-1\n") {
				t.Errorf("there is no %q in\n%s", line, control["/control"])
			}
		}
		verifyUnits(t, tarFiles(t, members["data.tar.gz"]))
		if !strings.Contains(control["/postinst"], "useradd") || control["/conffiles"] != "/etc/toryo/agent.yaml\n" {
			t.Errorf("it has the scripts %s and the configuration %q", control["/postinst"], control["/conffiles"])
		}
	})
	t.Run("rpm", func(t *testing.T) {
		t.Parallel()
		has(t, rpmFiles(t, fileOf(t, r, "toryo_0.3.0-rc.1_linux_arm64.rpm")), append(slices.Clone(want), "/usr/share/zsh/site-functions/_toryo"))
	})
}

// verifyUnits lets systemd look at the units. The server of a package has a user that stays.
func verifyUnits(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	arguments := []string{"verify", "--man=no", "--recursive-errors=no"}
	for _, name := range append(slices.Clone(serverUnits), "toryo-agent.service") {
		unit := filepath.Join(dir, name)
		text := strings.ReplaceAll(files["/usr/lib/systemd/system/"+name], byPackage, "/bin/true") // which is here
		if err := writeFile(unit, []byte(text)); err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, unit)
	}
	if said, err := output(t.Context(), dir, nil, "systemd-analyze", arguments...); err != nil || len(said) > 0 {
		t.Errorf("%v: %s", err, said)
	}
	for _, name := range serverUnits {
		text := files["/usr/lib/systemd/system/"+name]
		if !strings.Contains(text, "\nUser=toryo\n") || strings.Contains(text, "\nDynamicUser=") {
			t.Errorf("%s is\n%s", name, text)
		}
	}
}

// has looks for files, and for units that name the program where it is.
func has(t *testing.T, files map[string]string, want []string) {
	t.Helper()
	for _, name := range want {
		text, found := files[name]
		if !found {
			t.Errorf("there is no %s", name)
		}
		if strings.HasSuffix(name, ".service") && (!strings.Contains(text, "ExecStart=/usr/bin/toryo ") || strings.Contains(text, byHand)) {
			t.Errorf("%s is\n%s", name, text)
		}
	}
	if files["/usr/bin/toryo"] != "the program" {
		t.Errorf("the program is %q", files["/usr/bin/toryo"])
	}
	if files["/usr/bin/toryo-guest"] != "the guest" {
		t.Errorf("the program for sandboxes is %q", files["/usr/bin/toryo-guest"])
	}
}

// arMembers reads the archive that a Debian package is.
func arMembers(t *testing.T, packed []byte) map[string][]byte {
	t.Helper()
	rest, found := bytes.CutPrefix(packed, []byte("!<arch>\n"))
	if !found {
		t.Fatal("it is no archive")
	}
	members := map[string][]byte{}
	for len(rest) >= 60 {
		size, err := strconv.Atoi(strings.TrimSpace(string(rest[48:58])))
		if err != nil {
			t.Fatal(err)
		}
		members[strings.Trim(string(rest[:16]), " /")] = rest[60 : 60+size]
		rest = rest[60+size+size%2:]
	}
	return members
}

// tarFiles are the regular files of a compressed archive, by name from the root.
func tarFiles(t *testing.T, packed []byte) map[string]string {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	archive := tar.NewReader(plain)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			text, err := io.ReadAll(archive)
			if err != nil {
				t.Fatal(err)
			}
			files["/"+strings.TrimLeft(header.Name, "./")] = string(text)
		}
	}
}

// rpmFiles are the files of an RPM package: two headers, and a compressed cpio archive.
func rpmFiles(t *testing.T, packed []byte) map[string]string {
	t.Helper()
	const lead = 96
	rest := packed[lead:]
	for signature := range 2 {
		if !bytes.HasPrefix(rest, []byte{0x8e, 0xad, 0xe8}) {
			t.Fatalf("there is no header %d", signature)
		}
		size := 16 + 16*int(binary.BigEndian.Uint32(rest[8:12])) + int(binary.BigEndian.Uint32(rest[12:16]))
		if signature == 0 {
			size = (size + 7) / 8 * 8
		}
		rest = rest[size:]
	}
	plain, err := gzip.NewReader(bytes.NewReader(rest))
	if err != nil {
		t.Fatal(err)
	}
	archive, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	return cpioFiles(t, archive)
}

func cpioFiles(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	files := map[string]string{}
	number := func(at int) int {
		value, err := strconv.ParseInt(string(archive[at:at+8]), 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		return int(value)
	}
	padded := func(size int) int { return (size + 3) / 4 * 4 }
	for {
		const header = 110
		size, length := number(54), number(94)
		name := string(archive[header : header+length-1])
		if name == "TRAILER!!!" {
			return files
		}
		begin := padded(header + length)
		files["/"+strings.TrimLeft(name, "./")] = string(archive[begin : begin+size])
		archive = archive[begin+padded(size):]
	}
}

// What the scripts of Debian packages would have done is done, and nothing of a package gets
// rights or a place of its own.
func TestTreeOfDebianPackages(t *testing.T) {
	t.Parallel()
	files := tree{}
	add := func(header tar.Header, text string) error {
		header.Size = int64(len(text))
		return files.addEntry(&header, strings.NewReader(text))
	}
	for _, err := range []error{
		add(tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755}, ""),
		add(tar.Header{Name: "./bin/", Typeflag: tar.TypeDir, Mode: 0o755}, ""),
		add(tar.Header{Name: "./bin/su", Typeflag: tar.TypeReg, Mode: 0o4755}, "su"),
		add(tar.Header{Name: "./usr/bin/git", Typeflag: tar.TypeReg, Mode: 0o755}, "git"),
		add(tar.Header{Name: "./usr/bin/a-git", Typeflag: tar.TypeLink, Linkname: "./usr/bin/git"}, ""),
		add(tar.Header{Name: "./usr/share/man/man1/git.1", Typeflag: tar.TypeReg, Mode: 0o644}, "man"),
		add(tar.Header{Name: "./usr/share/ca-certificates/mozilla/B.crt", Typeflag: tar.TypeReg, Mode: 0o644}, "B\n\n"),
		add(tar.Header{Name: "./usr/share/ca-certificates/mozilla/A.crt", Typeflag: tar.TypeReg, Mode: 0o644}, "A"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := add(tar.Header{Name: "./dev/null", Typeflag: tar.TypeChar}, ""); err == nil {
		t.Error("an image gets a device")
	}
	if err := files.finish(); err != nil {
		t.Fatal(err)
	}
	if su := files["usr/bin/su"]; su.mode != 0o755 {
		t.Errorf("su has the mode %o", su.mode)
	}
	if files["bin"].link != "usr/bin" || files["usr/bin/sh"].link != "dash" || files["etc/ssl/certs/ca-certificates.crt"].content == nil {
		t.Error("links or certificates are missing")
	}
	if got := string(files["etc/ssl/certs/ca-certificates.crt"].content); got != "A\nB\n" {
		t.Errorf("the certificates are %q", got)
	}
	if _, found := files["usr/share/man/man1/git.1"]; found {
		t.Error("manuals take space")
	}
	var names []string
	for _, one := range sorted(withFolders([]entry{files["usr/bin/a-git"], files["usr/bin/git"]})) {
		names = append(names, one.name)
	}
	if want := []string{"usr", "usr/bin", "usr/bin/git", "usr/bin/a-git"}; !slices.Equal(names, want) {
		t.Errorf("the order is %v, want %v", names, want)
	}
	if err := (tree{}).finish(); err == nil {
		t.Error("an image has no certificates")
	}
}
