package main

import (
	"bufio"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// pair is two versions of a module, the second of which follows the first. The sums are those
// of go.sum; they are empty until the versions were downloaded.
type pair struct {
	module               string
	older, newer         string
	olderSum, newerSum   string
	olderTime, newerTime string
}

func (p pair) String() string { return p.module + " " + p.older + " " + p.newer }

// listed is a module of the list with the pairs that are named for it, if any are.
type listed struct {
	path  string
	pairs []pair
}

// parseList reads a list of modules. A line has a module's path; or that, two versions and
// the sums of their files. Text after # is a comment.
func parseList(text string) ([]listed, error) {
	var modules []listed
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		named, err := parsePair(words)
		if err != nil {
			return nil, fmt.Errorf("line %d of the list of modules: %w", n, err)
		}
		at := slices.IndexFunc(modules, func(m listed) bool { return m.path == words[0] })
		if at < 0 {
			at = len(modules)
			modules = append(modules, listed{path: words[0]})
		}
		if len(words) > 1 {
			modules[at].pairs = append(modules[at].pairs, named)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("the list of modules: %w", err)
	}
	if len(modules) == 0 {
		return nil, fmt.Errorf("the list of modules is empty")
	}
	return modules, nil
}

func parsePair(words []string) (pair, error) {
	p := pair{module: words[0]}
	if err := module.CheckPath(p.module); err != nil {
		return p, err
	}
	if len(words) == 1 {
		return p, nil
	}
	const all = 5
	if len(words) != all {
		return p, fmt.Errorf("%d words: it is a module, or a module, two versions and two sums", len(words))
	}
	p.older, p.newer, p.olderSum, p.newerSum = words[1], words[2], words[3], words[4]
	for _, version := range []string{p.older, p.newer} {
		if err := module.Check(p.module, version); err != nil {
			return p, err
		}
	}
	if semver.Compare(p.older, p.newer) >= 0 {
		return p, fmt.Errorf("%s is not older than %s", p.older, p.newer)
	}
	for _, sum := range []string{p.olderSum, p.newerSum} {
		if !strings.HasPrefix(sum, "h1:") {
			return p, fmt.Errorf("%q does not begin with h1: as sums do", sum)
		}
	}
	return p, nil
}

// pairsOf are the pairs of consecutive releases among versions in ascending order, the newest
// first. Versions before a release are left out.
func pairsOf(path string, versions []string, most int) []pair {
	releases := slices.DeleteFunc(slices.Clone(versions), func(v string) bool {
		return semver.Prerelease(v) != "" || semver.Build(v) != ""
	})
	slices.SortFunc(releases, semver.Compare)
	var pairs []pair
	for i := len(releases) - 1; i > 0 && len(pairs) < most; i-- {
		pairs = append(pairs, pair{module: path, older: releases[i-1], newer: releases[i]})
	}
	return pairs
}
