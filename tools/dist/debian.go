package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// imagePackages are what images have besides the program: what the server and agents call
// (git, bubblewrap), certificates for TLS, and a shell with the usual small programs, which
// is also what a sandbox of bubblewrap has. What these depend on comes with them.
var imagePackages = []string{"base-files", "bash", "bubblewrap", "ca-certificates", "coreutils", "dash", "diffutils",
	"findutils", "git", "grep", "gzip", "libc-bin", "mawk", "procps", "sed", "tar"}

// leftOut are packages that others depend on for what is not done in an image: setting up
// packages, and commands of git that are written in Perl. A star stands for the rest.
var leftOut = []string{"debconf", "git-man", "liberror-perl", "libperl*", "perl", "perl-base", "perl-modules*", "openssl"}

// leftOutPaths are parts of packages that nobody reads in an image. Licences stay.
var leftOutPaths = []string{"usr/share/man/", "usr/share/info/", "usr/share/locale/", "usr/share/lintian/", "usr/share/bash-completion/", "etc/cron.d/"}

// debianPackage is one that an image has.
type debianPackage struct {
	name, version, arch string
	vendor              string // debian, or what is made from it
	distribution        string // with the number of its version
	control             []byte // what it says of itself
	file                string // its name in the folder of packages, with that of the architecture
	digest              string
	path                string
}

// purl names the package in bills of materials.
func (p debianPackage) purl() string {
	return "pkg:deb/" + p.vendor + "/" + escapePurl(p.name) + "@" + escapePurl(p.version) + "?arch=" + p.arch + "&distro=" + escapePurl(p.distribution)
}

// Images are made from one version of Debian, whichever this machine has.
const (
	debianSuite   = "trixie"
	debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
)

// fetchDebian fetches the packages of images for some architectures to folders below a
// folder. It changes nothing else on this machine: sources and what apt keeps are in a folder
// of its own, and it sees a machine with no package. Of this machine's apt it uses settings
// such as proxies.
func fetchDebian(ctx context.Context, dir string, o options) error {
	for _, tool := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("images are made from Debian packages, and this machine has no %s: run this on Debian, or make images with the program alone by -image program", tool)
		}
	}
	if _, err := os.Stat(debianKeyring); err != nil {
		return fmt.Errorf("there is no %s, with which Debian's packages are checked: install the package debian-archive-keyring", debianKeyring)
	}
	sources, err := o.debianSources(ctx)
	if err != nil {
		return err
	}
	for _, arch := range architectures(o.targets) {
		fmt.Fprintf(o.log, "fetching Debian packages for %s\n", arch)
		if err := fetchFor(ctx, filepath.Join(dir, arch), arch, sources); err != nil {
			return fmt.Errorf("fetch Debian packages for %s: %w", arch, err)
		}
	}
	return nil
}

func fetchFor(ctx context.Context, dir, arch, sources string) (err error) {
	state, err := os.MkdirTemp("", "toryo-apt-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	for _, folder := range []string{"lists/partial", "cache/archives/partial", "dpkg"} {
		if err := os.MkdirAll(filepath.Join(state, folder), 0o755); err != nil { //nolint:gosec // apt reads as another user
			return err
		}
	}
	status, list := filepath.Join(state, "dpkg", "status"), filepath.Join(state, "sources.list")
	for file, text := range map[string]string{status: "", list: sources} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // as above
			return err
		}
	}
	options := []string{"-q", "-o", "Dir::Etc::SourceList=" + list, "-o", "Dir::Etc::SourceParts=/dev/null",
		"-o", "Dir::Etc::Preferences=/dev/null", "-o", "Dir::Etc::PreferencesParts=/dev/null", "-o", "Dir::State=" + state, "-o", "Dir::State::Lists=" + filepath.Join(state, "lists"), "-o", "Dir::State::status=" + status,
		"-o", "Dir::Cache=" + filepath.Join(state, "cache"), "-o", "APT::Architecture=" + arch, "-o", "APT::Architectures=" + arch,
		"-o", "APT::Sandbox::User=", "-o", "Debug::NoLocking=true", "-o", "APT::Install-Recommends=false", "-o", "Acquire::Retries=3", "-o", "Acquire::Languages=none"}
	if _, err := output(ctx, state, []string{"LC_ALL=C"}, "apt-get", append(options, "update")...); err != nil {
		return err
	}
	if _, err := output(ctx, state, []string{"LC_ALL=C"}, "apt-get", append(append(options, "install", "--yes", "--download-only"), imagePackages...)...); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return keepPackages(ctx, filepath.Join(state, "cache", "archives"), dir)
}

// debianSources is where apt finds the packages, with those of security fixes: on the mirror that
// was named, or on those that this machine uses. What comes from them is signed by Debian.
func (o options) debianSources(ctx context.Context) (string, error) {
	mirrors := map[string]string{"Debian": o.mirror, "Debian-Security": strings.TrimSuffix(o.mirror, "/") + "-security"}
	if o.mirror == "" {
		said, err := output(ctx, ".", []string{"LC_ALL=C"}, "apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)")
		if err != nil {
			return "", err
		}
		clear(mirrors)
		for line := range strings.Lines(string(said)) {
			label, address, _ := strings.Cut(strings.TrimSpace(line), " ")
			mirrors[label] = address
		}
	}
	var text strings.Builder
	for _, one := range []struct{ label, suite string }{{"Debian", debianSuite}, {"Debian-Security", debianSuite + "-security"}} {
		if mirrors[one.label] == "" {
			return "", fmt.Errorf("apt on this machine knows no mirror of %s: name one with -mirror, or let apt-get update fetch its lists", one.label)
		}
		fmt.Fprintf(&text, "deb [signed-by=%s] %s %s main\n", debianKeyring, mirrors[one.label], one.suite)
	}
	return text.String(), nil
}

// keepPackages copies the packages that images have.
func keepPackages(ctx context.Context, from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil { //nolint:gosec // nothing secret
		return err
	}
	files, err := filepath.Glob(filepath.Join(from, "*.deb"))
	if err != nil {
		return err
	}
	for _, file := range files {
		about, err := describeDebian(ctx, file)
		if err != nil {
			return err
		}
		if isLeftOut(about.name) {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), content, 0o644); err != nil { //nolint:gosec // nothing secret
			return err
		}
	}
	return nil
}

func isLeftOut(name string) bool {
	return slices.ContainsFunc(leftOut, func(pattern string) bool {
		begin, open := strings.CutSuffix(pattern, "*")
		return name == pattern || open && strings.HasPrefix(name, begin)
	})
}

// describeDebian reads what a package says of itself.
func describeDebian(ctx context.Context, file string) (debianPackage, error) {
	said, err := output(ctx, ".", nil, "dpkg-deb", "--show", "--showformat=${Package}\t${Version}\t${Architecture}", file)
	if err != nil {
		return debianPackage{}, err
	}
	fields := strings.Split(string(said), "\t")
	if len(fields) != 3 {
		return debianPackage{}, fmt.Errorf("%s says %q of itself", filepath.Base(file), said)
	}
	return debianPackage{name: fields[0], version: fields[1], arch: fields[2], path: file}, nil
}

// findDebian lists the packages of a folder for an architecture, by name.
func findDebian(ctx context.Context, dir, arch string) ([]debianPackage, error) {
	files, err := filepath.Glob(filepath.Join(dir, arch, "*.deb"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there are no Debian packages in %s: dist debian %s fetches them", filepath.Join(dir, arch), dir)
	}
	slices.Sort(files)
	var found []debianPackage
	for _, file := range files {
		about, err := describeDebian(ctx, file)
		if err != nil {
			return nil, err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if about.control, err = output(ctx, ".", nil, "dpkg-deb", "--field", file); err != nil {
			return nil, err
		}
		about.file, about.digest = path.Join(arch, filepath.Base(file)), digestOf(content)
		found = append(found, about)
	}
	return found, nil
}

// tree is the files of an image by name.
type tree map[string]entry

// addDebian adds the files of a package, and what it says of itself to where those who look for
// known mistakes in images find it. Its scripts are not run.
func (t tree) addDebian(ctx context.Context, p debianPackage) error {
	record := "var/lib/dpkg/status.d/" + p.name
	t[record] = entry{name: record, content: p.control}
	packed, err := output(ctx, ".", nil, "dpkg-deb", "--fsys-tarfile", p.path)
	if err != nil {
		return err
	}
	archive := tar.NewReader(bytes.NewReader(packed))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", p.file, err)
		}
		if err := t.addEntry(header, archive); err != nil {
			return fmt.Errorf("read %s of %s: %w", header.Name, p.file, err)
		}
	}
}

func (t tree) addEntry(header *tar.Header, content io.Reader) error {
	name := merged(header.Name)
	if name == "." || isMerged(name) || slices.ContainsFunc(leftOutPaths, func(begin string) bool { return strings.HasPrefix(name+"/", begin) }) {
		return nil
	}
	// No program of an image gets rights of another user, so that only permissions remain.
	made := entry{name: name, mode: header.FileInfo().Mode().Perm()}
	switch header.Typeflag {
	case tar.TypeDir:
		made.mode |= fs.ModeDir | header.FileInfo().Mode()&fs.ModeSticky
	case tar.TypeSymlink:
		made.link = header.Linkname
	case tar.TypeLink:
		made.hard = merged(header.Linkname)
	case tar.TypeReg:
		var err error
		if made.content, err = io.ReadAll(content); err != nil {
			return err
		}
	default:
		return fmt.Errorf("it is of the kind %q, which images do not have", header.Typeflag)
	}
	t[name] = made
	return nil
}

// linkedFolders lie in /usr, and links lead to them.
var linkedFolders = []string{"bin", "lib", "lib64", "sbin"}

func isMerged(name string) bool { return slices.Contains(linkedFolders, name) }

// merged is the name of a file in an image: older packages have some in /bin that are in
// /usr/bin.
func merged(name string) string {
	name = path.Clean(strings.TrimLeft(strings.TrimPrefix(name, "."), "/"))
	if first, _, below := strings.Cut(name, "/"); below && isMerged(first) {
		return "usr/" + name
	}
	return name
}

// distribution is the name of the one whose files these are, and the number of its version.
func (t tree) distribution() (name, number string) {
	for line := range strings.Lines(string(t["usr/lib/os-release"].content)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch value = strings.Trim(value, `"`); key {
		case "ID":
			name = value
		case "VERSION_ID":
			number = value
		}
	}
	return name, number
}

// finish makes what the scripts of packages would have made: the links to /usr, a shell, and
// the certificates in one file.
func (t tree) finish() error {
	for _, folder := range linkedFolders {
		t[folder] = entry{name: folder, link: "usr/" + folder}
		t["usr/"+folder] = entry{name: "usr/" + folder, mode: fs.ModeDir | 0o755}
	}
	if _, found := t["usr/bin/sh"]; !found {
		t["usr/bin/sh"] = entry{name: "usr/bin/sh", link: "dash"}
	}
	if _, found := t["usr/bin/awk"]; !found {
		t["usr/bin/awk"] = entry{name: "usr/bin/awk", link: "mawk"}
	}
	var names []string
	for name := range t {
		if strings.HasPrefix(name, "usr/share/ca-certificates/") && strings.HasSuffix(name, ".crt") {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return errors.New("the Debian packages have no certificates")
	}
	slices.Sort(names)
	var all bytes.Buffer
	for _, name := range names {
		all.Write(bytes.TrimSpace(t[name].content))
		all.WriteByte('\n')
	}
	const certificates = "etc/ssl/certs/ca-certificates.crt"
	t[certificates] = entry{name: certificates, content: all.Bytes()}
	return nil
}
