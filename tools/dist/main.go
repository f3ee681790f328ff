// Program dist builds a release of the program from a commit: archives for five systems,
// Debian and RPM packages, container images, a Helm chart, and what is to be known about
// them: release notes, bills of materials, provenance and checksums.
//
//	dist [flags]             build into a folder
//	dist [flags] check       build twice, apart from each other, and compare every byte
//	dist debian DIR          fetch the Debian packages that images are made from
//
// It builds what the commit has, in a folder made for it, never the working tree. Nothing in
// its output depends on the time, the machine or the folder, so that whoever has the commit,
// the same version of Go and the same Debian packages can make the same files.
package main

import (
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// options say what to build.
type options struct {
	root     string   // the repository
	out      string   // the folder that gets the files of the release
	commit   string   // what is built
	version  string   // from the tag of the commit, or the changelog, when empty
	targets  []target // systems
	image    string   // packages, program or none
	debs     string   // folder with the Debian packages for images; fetched when empty
	mirror   string   // where Debian packages are fetched from
	packages bool     // make .deb and .rpm files
	builder  string   // who builds, for the provenance
	origin   string   // the URI of the repository, for the provenance; not said when empty
	level    int      // of gzip, for the layers of images
	cache    string   // the compiler's; the usual one when empty
	log      io.Writer
}

const (
	imageWithPackages = "packages"
	imageProgramOnly  = "program"
	noImage           = "none"
)

// builderID names whoever runs this program by hand.
const builderID = "https://github.com/toryo-dev/toryo/tools/dist"

func run(ctx context.Context, arguments []string, log io.Writer) error {
	o := options{log: log, targets: slices.Clone(allTargets), level: gzip.BestCompression}
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.StringVar(&o.root, "root", ".", "the repository")
	flags.StringVar(&o.out, "o", "", "folder for the files; it is replaced (default dist/VERSION)")
	flags.StringVar(&o.commit, "commit", "HEAD", "what to build")
	flags.StringVar(&o.version, "version", "", "version (default: the tag of the commit, or one that is not released)")
	flags.StringVar(&o.image, "image", imageWithPackages, "images: packages (Debian's git, bubblewrap and certificates), program (nothing but the program) or none")
	flags.StringVar(&o.debs, "debs", "", "folder with the Debian packages for images, as dist debian makes it; without it they are fetched")
	flags.BoolVar(&o.packages, "packages", true, "make Debian and RPM packages")
	flags.StringVar(&o.builder, "builder", builderID, "URI that says in the provenance who builds")
	flags.StringVar(&o.mirror, "mirror", "", "URI of the mirror of Debian that packages for images are fetched from, with -security after it for security fixes (default: those of this machine's apt)")
	flags.StringVar(&o.origin, "source", "", "URI of the repository, for the provenance (default: that of the remote origin, if it is one of HTTPS)")
	flags.Func("targets", "systems, such as linux/amd64,darwin/arm64 (default all)", func(text string) (err error) {
		o.targets, err = parseTargets(text)
		return err
	})
	shared := flags.Bool("shared-cache", false, "let the second build of check use the compiler's cache, which is quick and proves less")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if !slices.Contains([]string{imageWithPackages, imageProgramOnly, noImage}, o.image) {
		return fmt.Errorf("-image is packages, program or none, and not %q", o.image)
	}
	var err error
	if o.root, err = filepath.Abs(o.root); err != nil {
		return err
	}
	switch words := flags.Args(); {
	case len(words) == 0:
		if err = checkGo(ctx, o.root); err == nil {
			_, err = build(ctx, o)
		}
		return err
	case len(words) == 1 && words[0] == "check":
		if err = checkGo(ctx, o.root); err == nil {
			err = check(ctx, o, *shared)
		}
		return err
	case len(words) == 2 && words[0] == "debian":
		return fetchDebian(ctx, words[1], o)
	default:
		return fmt.Errorf("%q is no command: there are check and debian DIR", strings.Join(words, " "))
	}
}

// check builds twice and compares. The second build has another folder and, unless it is
// shared, an empty cache of its own, so that nothing of the first is taken over.
func check(ctx context.Context, o options, shared bool) (err error) {
	place, err := os.MkdirTemp("", "toryo-dist-check-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(place)) }()
	if o.image == imageWithPackages && o.debs == "" {
		o.debs = filepath.Join(place, "debs")
		if err := fetchDebian(ctx, o.debs, o); err != nil {
			return err
		}
	}
	first, err := build(ctx, o)
	if err != nil {
		return err
	}
	again := o
	again.out = filepath.Join(place, "the second release")
	if !shared {
		again.cache = filepath.Join(place, "cache")
	}
	second, err := build(ctx, again)
	if err != nil {
		return err
	}
	if err := compare(first, second); err != nil {
		return err
	}
	fmt.Fprintf(o.log, "both builds have the same %d files, byte for byte\n", len(first.files))
	return nil
}

// compare names the files that differ between two builds of a release.
func compare(first, second *release) error {
	one, other := first.digests(), second.digests()
	var differ []string
	for name, digest := range one {
		if other[name] != digest {
			differ = append(differ, name)
		}
	}
	for name := range other {
		if one[name] == "" {
			differ = append(differ, name)
		}
	}
	if len(differ) > 0 {
		slices.Sort(differ)
		return fmt.Errorf("two builds of the same commit differ in %s", strings.Join(differ, ", "))
	}
	return nil
}
