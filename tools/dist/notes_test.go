package main

import (
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

func TestSections(t *testing.T) {
	t.Parallel()
	const changelog = "# Changelog\n\nwords\n\n## 0.2.0 (unreleased)\n\n### Added\n\n- two\n\n## [0.1.1] - 2026-01-02\n\n- fix\n\n## 0.1.0\n\n- one\n"
	for version, want := range map[string]string{
		"0.2.0": "### Added\n\n- two", "0.2.0-dev.g0123": "### Added\n\n- two", "0.1.1": "- fix", "0.1.0": "- one", "0.1.0-rc.1": "- one", "0.3.0": "",
	} {
		if got, err := sectionOf(changelog, version); got != want || (err != nil) != (want == "") {
			t.Errorf("the notes of %s are %q, %v; want %q", version, got, err, want)
		}
	}
	if got, err := newestVersion(changelog); got != "0.2.0" || err != nil {
		t.Errorf("the newest is %q, %v", got, err)
	}
	if got, err := newestVersion("# Changelog\n\n## Unreleased\n"); err == nil {
		t.Errorf("without versions the newest is %q", got)
	}
}

func TestLicences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Apache License\n   Version 2.0, January 2004":                                                                "Apache-2.0",
		"Redistribution and use in source and binary\nforms, with or without …\nNeither the name of Google":           "BSD-3-Clause",
		"Redistribution and use in source and binary forms, with or without":                                          "BSD-2-Clause",
		"Permission is hereby granted, free of charge, … The above copyright notice and this permission notice shall": "MIT",
		"All rights reserved": "",
		"Apache License, Version 2.0. Permission is hereby granted, free of charge, … The above copyright notice and this permission notice shall": "",
	} {
		if got := licenceOf(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// Every module is in the text with its terms, and terms that several share are there once.
func TestThirdPartyText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"LICENSE.md": "All rights reserved\r\n", "NOTICE": "of somebody\n", "license.go": "package license\n", "README": "read\n"} {
		if err := writeFile(filepath.Join(dir, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	own, err := readTerms(dir)
	if want := []string{"All rights reserved", "of somebody"}; err != nil || !slices.Equal(own.texts, want) || own.id != "" {
		t.Fatalf("the terms are %+v, %v; want %q", own, err, want)
	}
	shared := terms{texts: []string{"MIT"}}
	got := thirdPartyText([]*debug.Module{{Path: "c", Version: "v3"}, {Path: "b", Version: "v2"}, {Path: "a", Version: "v1"}, {Path: "b", Version: "v2"}, {Path: "d", Version: "v4"}},
		map[string]terms{"a": own, "b": shared, "c": shared})
	for _, want := range []string{"\na v1\n\nAll rights reserved\n\nof somebody\n", "\nb v2\nc v3\n\nMIT\n", "\nd v4\n\nIt has no file", "The standard library of Go\n\nCopyright 2009 The Go Authors"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
}

func TestPackageURLs(t *testing.T) {
	t.Parallel()
	for _, one := range []struct{ text, want string }{
		{"1:2.39.5-0+deb12u1", "1%3A2.39.5-0%2Bdeb12u1"}, {"github.com/a/b", "github.com/a/b"}, {"libstdc++6", "libstdc%2B%2B6"},
	} {
		if got := escapePurl(one.text); got != one.want {
			t.Errorf("%s is %s, want %s", one.text, got, one.want)
		}
	}
}
