package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The files of deploy that packages have. Units name the program where people put it by
// hand; packages put it elsewhere.
const (
	unitFolder    = "deploy/systemd"
	packageFolder = "deploy/packages"
	byHand        = "/usr/local/bin/toryo"
	byPackage     = "/usr/bin/toryo"
	madeUser      = "DynamicUser=yes\n"
)

// serverUnits run the server, as the user that packages make.
var serverUnits = []string{"toryo.service", "toryo-up.service"}

// packageContent is what nfpm calls a content: a file or a folder that a package has.
type packageContent struct {
	Source   string   `json:"src,omitempty"`
	To       string   `json:"dst"`
	Type     string   `json:"type,omitempty"`
	Packager string   `json:"packager,omitempty"` // of this kind of package only
	Info     fileInfo `json:"file_info"`
}

type fileInfo struct {
	Mode  uint32 `json:"mode"`
	Owner string `json:"owner"`
	Group string `json:"group"`
	Time  string `json:"mtime"`
}

// packed is a file to be in a package.
type packed struct {
	to       string
	mode     uint32
	content  []byte
	kind     string
	packager string
}

// writePackages writes a Debian and an RPM package for each architecture of Linux. nfpm makes
// them; it belongs to no module of the product.
func (r *release) writePackages(ctx context.Context) error {
	if !r.packages || len(architectures(r.targets)) == 0 {
		return nil
	}
	said, err := output(ctx, r.source, nil, filepath.Join(r.source, "scripts", "tool"), "github.com/goreleaser/nfpm/v2/cmd/nfpm", "packages")
	if err != nil {
		return err
	}
	nfpm := strings.TrimSpace(string(said))
	r.nfpm = nfpm
	for _, arch := range architectures(r.targets) {
		description, err := r.describePackage(arch)
		if err != nil {
			return err
		}
		for _, packager := range []string{"deb", "rpm"} {
			name := r.named("linux_" + arch + "." + packager)
			made := filepath.Join(r.work, name)
			epoch := []string{"SOURCE_DATE_EPOCH=" + r.epoch()}
			if _, err := output(ctx, r.work, epoch, nfpm, "package", "--config", description, "--packager", packager, "--target", made); err != nil {
				return err
			}
			content, err := os.ReadFile(made)
			if err != nil {
				return err
			}
			if err := r.add(name, content); err != nil {
				return err
			}
		}
	}
	return nil
}

// describePackage writes the files of a package to a folder and a description for nfpm
// beside them. JSON is YAML, which nfpm reads.
func (r *release) describePackage(arch string) (string, error) {
	folder := filepath.Join(r.work, "package", arch)
	files, err := r.packedFiles(arch)
	if err != nil {
		return "", err
	}
	contents := []packageContent{{To: "/etc/toryo", Type: "dir", Info: r.info(0o755)}}
	for _, one := range files {
		at := filepath.Join(folder, one.packager, filepath.FromSlash(one.to))
		if err := writeFile(at, one.content); err != nil {
			return "", err
		}
		contents = append(contents, packageContent{Source: at, To: one.to, Type: one.kind, Packager: one.packager, Info: r.info(one.mode)})
	}
	scripts := map[string]string{}
	for _, name := range []string{"postinstall", "preremove", "postremove"} {
		scripts[name] = filepath.Join(r.source, filepath.FromSlash(packageFolder), name+".sh")
	}
	text, err := json.MarshalIndent(map[string]any{
		"name": "toryo", "arch": arch, "platform": "linux", "version": r.version, "version_schema": "semver", "release": "1",
		"section": "devel", "priority": "optional", "license": "Apache-2.0", "mtime": r.made.Format(time.RFC3339),
		"maintainer": "The Toryo authors <maintainers@toryo.dev>", "homepage": homepage,
		"description": "A self-hosted coding agent: from an assigned issue to a reviewed pull request.\n" +
			"The server takes issues of GitHub, GitLab, Gitea and its own board; agents do the work in sandboxes.",
		"recommends": []string{"bubblewrap"},
		"contents":   contents, "scripts": scripts,
		"overrides": map[string]any{
			"deb": map[string]any{"depends": []string{"git", "ca-certificates", "passwd"}},
			"rpm": map[string]any{"depends": []string{"git-core", "ca-certificates", "shadow-utils"}},
		},
		"deb": map[string]any{"compression": "gzip"},
		"rpm": map[string]any{"compression": "gzip", "buildhost": "toryo"},
	}, "", "  ")
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, "nfpm.yaml")
	return file, writeFile(file, text)
}

// packedFiles are the program, its units, and what shells and readers want.
func (r *release) packedFiles(arch string) ([]packed, error) {
	program := r.programs[target{"linux", arch}]
	files := []packed{
		{to: byPackage, mode: 0o755, content: program.content},
		{to: path.Join(path.Dir(byPackage), guestName), mode: 0o755, content: program.guest.content},
		{to: "/usr/share/bash-completion/completions/toryo", mode: 0o644, content: r.document("completions/toryo.bash")},
		{to: "/usr/share/fish/vendor_completions.d/toryo.fish", mode: 0o644, content: r.document("completions/toryo.fish")},
		{to: "/usr/share/zsh/vendor-completions/_toryo", mode: 0o644, content: r.document("completions/_toryo"), packager: "deb"},
		{to: "/usr/share/zsh/site-functions/_toryo", mode: 0o644, content: r.document("completions/_toryo"), packager: "rpm"},
		{to: "/usr/share/doc/toryo/copyright", mode: 0o644, content: r.document("LICENSE")},
		{to: "/usr/share/doc/toryo/" + thirdPartyFile, mode: 0o644, content: r.document(thirdPartyFile)},
		{to: "/usr/share/doc/toryo/README.md", mode: 0o644, content: r.document("README.md")},
	}
	for _, one := range r.documents {
		if page, is := strings.CutPrefix(one.name, "man/"); is {
			text, err := compress(one.content, gzip.BestCompression)
			if err != nil {
				return nil, err
			}
			files = append(files, packed{to: "/usr/share/man/man1/" + page + ".gz", mode: 0o644, content: text})
		}
	}
	for _, one := range []struct{ from, to, kind string }{
		{unitFolder + "/toryo.service", "/usr/lib/systemd/system/toryo.service", ""},
		{unitFolder + "/toryo-agent.service", "/usr/lib/systemd/system/toryo-agent.service", ""},
		{unitFolder + "/toryo-up.service", "/usr/lib/systemd/system/toryo-up.service", ""},
		{unitFolder + "/agent.yaml", "/etc/toryo/agent.yaml", "config|noreplace"},
	} {
		text, err := r.read(one.from)
		if err != nil {
			return nil, err
		}
		if path.Ext(one.to) == ".service" {
			text = bytes.ReplaceAll(text, []byte(byHand), []byte(byPackage))
		}
		if slices.Contains(serverUnits, path.Base(one.to)) {
			if text, err = r.withUser(text); err != nil {
				return nil, fmt.Errorf("%s: %w", one.from, err)
			}
		}
		files = append(files, packed{to: one.to, mode: 0o644, content: text, kind: one.kind})
	}
	return files, nil
}

// withUser is a unit of the server with the user that the package makes. It is no addition in
// a folder of its own: systemd would also add that to a unit that somebody has written.
func (r *release) withUser(unit []byte) ([]byte, error) {
	user, err := r.read(packageFolder + "/user.conf")
	if err != nil {
		return nil, err
	}
	if bytes.Count(unit, []byte(madeUser)) != 1 {
		return nil, fmt.Errorf("it does not have the line %q once", madeUser)
	}
	return bytes.Replace(unit, []byte(madeUser), user, 1), nil
}

// info is of a file of root.
func (r *release) info(mode uint32) fileInfo {
	return fileInfo{Mode: mode, Owner: "root", Group: "root", Time: r.made.Format(time.RFC3339)}
}

// epoch is the time of the commit as tools for reproducible builds read it.
func (r *release) epoch() string { return strconv.FormatInt(r.made.Unix(), 10) }

func writeFile(at string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	return os.WriteFile(at, content, 0o600)
}
