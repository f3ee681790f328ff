package main

import (
	"os"
	"strings"
)

// mostLicence is how much of a file is read to tell a licence by.
const mostLicence = 64 << 10

// phrases tell licences, by words that the others do not have. The first that fits counts.
var phrases = []struct {
	id  string
	all []string
}{
	{"Apache-2.0", []string{"apache license", "version 2.0"}},
	{"MPL-2.0", []string{"mozilla public license", "version 2.0"}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "neither the name"}},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms"}},
	{"MIT", []string{"permission is hereby granted, free of charge", "the above copyright notice and this permission notice"}},
	{"ISC", []string{"permission to use, copy, modify, and/or distribute this software for any purpose"}},
	{"Unlicense", []string{"this is free and unencumbered software released into the public domain"}},
}

// licenceOf names the licence of a text, or nothing when it is none of those that are known.
func licenceOf(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, known := range phrases {
		fits := true
		for _, phrase := range known.all {
			fits = fits && strings.Contains(text, phrase)
		}
		if fits {
			return known.id
		}
	}
	return ""
}

// licenceOfFiles names the licence if all files that tell one tell the same.
func licenceOfFiles(files []string) string {
	found := ""
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || !info.Mode().IsRegular() || info.Size() > mostLicence {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		switch id := licenceOf(string(text)); {
		case id == "":
		case found == "":
			found = id
		case found != id:
			return ""
		}
	}
	return found
}

// escapeGlob makes a pattern that fits a path and nothing else.
func escapeGlob(path string) string {
	return strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace(path)
}
