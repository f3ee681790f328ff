package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// entry is a file, a folder or a link of an archive. A mode of 0 is that of a file that
// everybody may read. It belongs to root, or in images to an owner.
type entry struct {
	name    string
	mode    fs.FileMode // with the type
	content []byte
	link    string // where a symbolic link leads
	hard    string // the entry that a hard link is another name of
	owner   int
}

func (e entry) header(at time.Time) *tar.Header {
	header := &tar.Header{Name: e.name, Mode: int64(e.mode.Perm()), ModTime: at, Uid: e.owner, Gid: e.owner, Format: tar.FormatPAX}
	if header.Mode == 0 {
		header.Mode = 0o644
	}
	if e.mode&fs.ModeSticky != 0 {
		header.Mode |= 0o1000
	}
	switch {
	case e.hard != "":
		header.Typeflag, header.Linkname = tar.TypeLink, e.hard
	case e.link != "":
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, e.link, 0o777
	case e.mode.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, strings.TrimSuffix(e.name, "/")+"/"
	default:
		header.Typeflag, header.Size = tar.TypeReg, int64(len(e.content))
	}
	return header
}

// sorted is the entries by name, so that their order does not depend on who collected them.
// Hard links come last: what they are another name of has to be there already.
func sorted(entries []entry) []entry {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b entry) int {
		if (a.hard == "") != (b.hard == "") {
			return strings.Compare(a.hard, b.hard)
		}
		return strings.Compare(a.name, b.name)
	})
	return entries
}

func writeTar(to io.Writer, entries []entry, at time.Time) error {
	archive := tar.NewWriter(to)
	for _, e := range entries {
		header := e.header(at)
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if header.Typeflag == tar.TypeReg {
			if _, err := archive.Write(e.content); err != nil {
				return err
			}
		}
	}
	return archive.Close()
}

// compress is gzip without a name and a time.
func compress(content []byte, level int) ([]byte, error) {
	var packed bytes.Buffer
	to, err := gzip.NewWriterLevel(&packed, level)
	if err != nil {
		return nil, err
	}
	_, err = to.Write(content)
	err = errors.Join(err, to.Close()) // which writes the rest
	return packed.Bytes(), err
}

func tarball(entries []entry, at time.Time) ([]byte, error) {
	var plain bytes.Buffer
	if err := writeTar(&plain, sorted(entries), at); err != nil {
		return nil, err
	}
	return compress(plain.Bytes(), gzip.BestCompression)
}

func zipFile(entries []entry, at time.Time) ([]byte, error) {
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	for _, e := range sorted(entries) {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		header.SetMode(fs.FileMode(e.header(at).Mode)) //nolint:gosec // permissions only
		to, err := archive.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(e.content); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return packed.Bytes(), err
}

// writeArchives writes one for each system: zip for Windows, which opens nothing else by
// itself.
func (r *release) writeArchives(context.Context) error {
	for _, t := range r.targets {
		folder := r.named(t.String())
		made := r.programs[t]
		entries := []entry{
			{name: path.Join(folder, made.name), mode: 0o755, content: made.content},
			{name: path.Join(folder, guestName), mode: 0o755, content: made.guest.content},
		}
		for _, document := range r.documents {
			document.name = path.Join(folder, document.name)
			entries = append(entries, document)
		}
		write, name := tarball, folder+".tar.gz"
		if t.os == "windows" {
			write, name = zipFile, folder+".zip"
		}
		content, err := write(entries, r.made)
		if err != nil {
			return err
		}
		if err := r.add(name, content); err != nil {
			return err
		}
	}
	return nil
}

const chartFolder = "deploy/helm/toryo"

// chartVersion finds both versions of Chart.yaml: the chart's and that of the program.
var chartVersion = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)

// writeChart packs the Helm chart, with the version of the release.
func (r *release) writeChart(context.Context) error {
	root := filepath.Join(r.source, filepath.FromSlash(chartFolder))
	var entries []entry
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, found fs.DirEntry, err error) error {
		if err != nil || found.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if name == "Chart.yaml" {
			content = chartVersion.ReplaceAll(content, []byte(`${1}: "`+r.version+`"`))
		}
		entries = append(entries, entry{name: "toryo/" + name, content: content})
		return err
	})
	if err != nil {
		return err
	}
	content, err := tarball(entries, r.made)
	if err != nil {
		return err
	}
	return r.add("toryo-chart-"+r.version+".tgz", content)
}
