package rules

import (
	"math"
	"strings"
)

// find returns the secrets in a text, in the order of the rules.
func (d *detector) find(text string) []string {
	var secrets []string
	for i, present := range d.keywords.in(text) {
		if !present {
			continue
		}
		r := &d.rules[i]
		for _, at := range r.pattern().FindAllStringIndex(text, -1) {
			secret := r.secret(strings.Trim(text[at[0]:at[1]], "\n"))
			if r.entropy != 0 && entropy(secret) <= r.entropy {
				continue
			}
			if secret != "" && !d.allowed.has(secret) && !r.allowed.has(secret) {
				secrets = append(secrets, secret)
			}
		}
	}
	return secrets
}

// secret is the part of a match that is to be masked.
func (r *rule) secret(match string) string {
	groups := r.pattern().FindStringSubmatch(match)
	if r.group > 0 && r.group < len(groups) {
		return groups[r.group]
	}
	for i, group := range groups {
		if i > 0 && group != "" {
			return group
		}
	}
	return match
}

func (e *exceptions) has(secret string) bool {
	for _, pattern := range e.patterns {
		if pattern().MatchString(secret) {
			return true
		}
	}
	if len(e.words) == 0 {
		return false
	}
	lower := strings.ToLower(secret)
	for _, word := range e.words {
		if strings.Contains(lower, word) {
			return true
		}
	}
	return false
}

// entropy is how many bits a character of a text carries, after Shannon. Characters
// are counted, and the text is measured in bytes, as the rules' limits were made.
func entropy(text string) float64 {
	counts := map[rune]int{}
	for _, c := range text {
		counts[c]++
	}
	var bits float64
	for _, count := range counts {
		share := float64(count) / float64(len(text))
		bits -= share * math.Log2(share)
	}
	return bits
}
