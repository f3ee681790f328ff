package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

const (
	changelogFile = "CHANGELOG.md"
	checksumFile  = "SHA256SUMS"
)

var (
	// semantic is a version as semver.org has it, without what comes after a plus.
	semantic = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
	// heading begins the section of a version: ## 0.1.0, with a date or a remark.
	heading = regexp.MustCompile(`(?m)^## \[?v?([0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.-]*)\]?(?:[ \t].*)?$`)
)

func isVersion(text string) bool { return semantic.MatchString(text) }

// newestVersion is the first that the changelog has a section for.
func newestVersion(changelog string) (string, error) {
	found := heading.FindStringSubmatch(changelog)
	if found == nil {
		return "", errors.New(changelogFile + " has no section of a version")
	}
	return found[1], nil
}

// sectionOf is what the changelog says of a version. One that is not released yet has the
// section of the version that it leads to.
func sectionOf(changelog, version string) (string, error) {
	released, _, _ := strings.Cut(version, "-")
	for _, wanted := range []string{version, released} {
		for _, at := range heading.FindAllStringSubmatchIndex(changelog, -1) {
			if changelog[at[2]:at[3]] != wanted {
				continue
			}
			text := changelog[at[1]:]
			if end := strings.Index(text, "\n## "); end >= 0 {
				text = text[:end]
			}
			return strings.TrimSpace(text), nil
		}
	}
	return "", fmt.Errorf("%s has no section for %s", changelogFile, version)
}

// writeNotes writes the release notes.
func (r *release) writeNotes(context.Context) error {
	changelog, err := r.read(changelogFile)
	if err != nil {
		return err
	}
	section, err := sectionOf(string(changelog), r.version)
	if err != nil {
		return err
	}
	return r.add(r.named("notes.md"), []byte("# Toryo "+r.version+"\n\n"+section+"\n"))
}

// writeChecksums writes the digests of all files, as sha256sum --check reads them.
func (r *release) writeChecksums(context.Context) error {
	var text bytes.Buffer
	for _, one := range sortedFiles(r.files) {
		fmt.Fprintf(&text, "%s  %s\n", one.digest, one.name)
	}
	return r.add(checksumFile, text.Bytes())
}
