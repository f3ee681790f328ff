package config

import (
	"slices"
	"strings"
)

// nearest returns the word that was probably meant, or "".
func nearest(word string, known []string) string {
	if len(word) > 64 {
		return "" // not a slip of the pen
	}
	word = plainName(word)
	best, least := "", 1+len(word)/4
	for _, candidate := range known {
		if steps := distance(word, candidate); steps <= least && (best == "" || steps < least) {
			best, least = candidate, steps
		}
	}
	if best != "" || len(word) < 3 {
		return best
	}
	for _, candidate := range known {
		if strings.Contains(candidate, word) || len(candidate) >= 3 && strings.Contains(word, candidate) {
			return candidate
		}
	}
	return ""
}

// plainName writes a name as the keys are written.
func plainName(word string) string {
	return strings.ReplaceAll(strings.ToLower(word), "-", "_")
}

// distance counts the letters to insert, remove, change or swap with their
// neighbour to get from one word to the other.
func distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	rows := make([][]int, len(from)+1)
	for i := range rows {
		rows[i] = make([]int, len(to)+1)
		rows[i][0] = i
	}
	for j := range to {
		rows[0][j+1] = j + 1
	}
	for i := range from {
		for j := range to {
			change := 1
			if from[i] == to[j] {
				change = 0
			}
			rows[i+1][j+1] = min(rows[i][j+1]+1, rows[i+1][j]+1, rows[i][j]+change)
			if i > 0 && j > 0 && from[i] == to[j-1] && from[i-1] == to[j] {
				rows[i+1][j+1] = min(rows[i+1][j+1], rows[i-1][j-1]+1)
			}
		}
	}
	return rows[len(from)][len(to)]
}

// suggest says what may have been meant by a name that a section does not have:
// a key of that section, or one of another.
func (s *schema) suggest(in *section, name string) string {
	var here []string
	for _, m := range in.members {
		here = append(here, m.name())
	}
	if meant := nearest(name, here); meant != "" {
		return "did you mean " + meant + "?"
	}
	if places := s.placesOf(plainName(name)); len(places) > 0 {
		return "it belongs " + listed(places)
	}
	var elsewhere []string
	for _, k := range slices.Concat(s.keys, s.inEntry) {
		elsewhere = append(elsewhere, k.name)
	}
	if meant := nearest(name, elsewhere); meant != "" && distance(plainName(name), meant) <= 1+len(name)/4 {
		return "did you mean " + meant + "? It belongs " + listed(s.placesOf(meant))
	}
	return "known here: " + strings.Join(here, ", ")
}

// placesOf names the sections that have a key or section of this name.
func (s *schema) placesOf(name string) []string {
	var places []string
	for path, at := range s.sections {
		if _, found := at.find(name); !found {
			continue
		}
		if path == "" {
			places = append(places, "at the top level")
		} else {
			places = append(places, "in "+path)
		}
	}
	slices.Sort(places)
	return places
}
