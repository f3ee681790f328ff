package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// thirdPartyFile has the terms of all that a program contains besides what is in this
// repository. Most of them ask to be passed on with it.
const thirdPartyFile = "THIRD-PARTY-LICENSES.txt"

// goLicence is that of Go's standard library. It is here because not every installation of Go
// has the file.
//
//go:embed go-license.txt
var goLicence string

// mostLicence is how much text a file with a licence has at most.
const mostLicence = 256 << 10

// terms are those under which a module is given.
type terms struct {
	id    string   // the licence as SPDX names it, where its text is a usual one
	texts []string // of the files that have them
}

var (
	licenceFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying)([-._].*)?$`)
	noticeFile  = regexp.MustCompile(`(?i)^(notice|patents)([-._].*)?$`)
)

// readTerms reads those of a module from its folder.
func readTerms(dir string) (terms, error) {
	found, err := os.ReadDir(dir)
	if err != nil {
		return terms{}, err
	}
	var read terms
	ids := map[string]bool{}
	for _, one := range found {
		named := licenceFile.MatchString(one.Name())
		if !one.Type().IsRegular() || filepath.Ext(one.Name()) == ".go" || !named && !noticeFile.MatchString(one.Name()) {
			continue
		}
		text, err := readText(filepath.Join(dir, one.Name()))
		if err != nil {
			return terms{}, err
		}
		read.texts = append(read.texts, text)
		if named {
			ids[licenceOf(text)] = true
		}
	}
	if len(ids) == 1 {
		read.id = slices.Collect(maps.Keys(ids))[0]
	}
	return read, nil
}

func readText(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	if info.Size() > mostLicence {
		return "", fmt.Errorf("%s has %d bytes, which is no licence", file, info.Size())
	}
	text, err := os.ReadFile(file)
	return strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")), err
}

// phrases tell licences, by words that the others do not have.
var phrases = []struct {
	id  string
	all []string
	not string
}{
	{"Apache-2.0", []string{"apache license", "version 2.0"}, ""},
	{"MPL-2.0", []string{"mozilla public license", "version 2.0"}, ""},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "neither the name"}, ""},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms"}, "neither the name"},
	{"MIT", []string{"permission is hereby granted, free of charge", "the above copyright notice and this permission notice"}, ""},
	{"ISC", []string{"permission to use, copy, modify, and/or distribute this software for any purpose"}, ""},
	{"Unlicense", []string{"this is free and unencumbered software released into the public domain"}, ""},
}

// licenceOf names the licence of a text. It names none when the text is none of those that are
// known, or more than one of them.
func licenceOf(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	id := ""
	for _, known := range phrases {
		fits := known.not == "" || !strings.Contains(text, known.not)
		for _, phrase := range known.all {
			fits = fits && strings.Contains(text, phrase)
		}
		if fits && id != "" {
			return ""
		}
		if fits {
			id = known.id
		}
	}
	return id
}

// thirdParty is the text of [thirdPartyFile], for all programs of the release together.
func (r *release) thirdParty(ctx context.Context) (string, error) {
	var err error
	if r.terms, err = r.findTerms(ctx); err != nil {
		return "", err
	}
	var modules []*debug.Module
	for _, made := range r.programs {
		found, err := made.modules()
		if err != nil {
			return "", err
		}
		modules = append(modules, found...)
	}
	return thirdPartyText(modules, r.terms), nil
}

// findTerms reads the terms of all modules that the compiler has fetched.
func (r *release) findTerms(ctx context.Context) (map[string]terms, error) {
	said, err := output(ctx, r.source, r.environ(), "go", "list", "-m", "-f", "{{with .Replace}}{{.Path}}\t{{.Dir}}{{else}}{{.Path}}\t{{.Dir}}{{end}}", "all")
	if err != nil {
		return nil, err
	}
	all := map[string]terms{}
	for line := range strings.Lines(string(said)) {
		module, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if dir == "" {
			continue // no program needs it
		}
		read, err := readTerms(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		all[module] = read
	}
	return all, nil
}

// thirdPartyText has each text once, with the modules that it is for.
func thirdPartyText(modules []*debug.Module, known map[string]terms) string {
	parts := map[string][]string{goLicence: {"The standard library of Go"}}
	for _, module := range modules {
		texts := known[module.Path].texts
		if len(texts) == 0 {
			texts = []string{"It has no file with its terms: see https://pkg.go.dev/" + module.Path}
		}
		text := strings.Join(texts, "\n\n")
		if name := module.Path + " " + module.Version; !slices.Contains(parts[text], name) {
			parts[text] = append(parts[text], name)
		}
	}
	var written []string
	for text, names := range parts {
		slices.Sort(names)
		written = append(written, strings.Join(names, "\n")+"\n\n"+strings.TrimSpace(text)+"\n")
	}
	slices.Sort(written)
	line := "\n" + strings.Repeat("=", 80) + "\n\n"
	return "Toryo contains software of others. This is what it is, and its terms.\n" + line + strings.Join(written, line)
}
