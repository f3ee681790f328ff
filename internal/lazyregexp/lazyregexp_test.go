package lazyregexp

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSameAsRegexp compares every method with that of the standard library.
func TestSameAsRegexp(t *testing.T) {
	t.Parallel()
	const text = `([a-z]+)=(\d*)`
	for _, s := range []string{"", "none", "a=1", "a=1, bc=23; d="} {
		lazy, plain, b := New(text), regexp.MustCompile(text), []byte(s)
		for name, pair := range map[string][2]any{
			"FindAllString":              {lazy.FindAllString(s, -1), plain.FindAllString(s, -1)},
			"FindAllStringIndex":         {lazy.FindAllStringIndex(s, 2), plain.FindAllStringIndex(s, 2)},
			"FindAllStringSubmatch":      {lazy.FindAllStringSubmatch(s, -1), plain.FindAllStringSubmatch(s, -1)},
			"FindAllStringSubmatchIndex": {lazy.FindAllStringSubmatchIndex(s, -1), plain.FindAllStringSubmatchIndex(s, -1)},
			"FindAllSubmatch":            {lazy.FindAllSubmatch(b, -1), plain.FindAllSubmatch(b, -1)},
			"FindString":                 {lazy.FindString(s), plain.FindString(s)},
			"FindStringIndex":            {lazy.FindStringIndex(s), plain.FindStringIndex(s)},
			"FindStringSubmatch":         {lazy.FindStringSubmatch(s), plain.FindStringSubmatch(s)},
			"FindStringSubmatchIndex":    {lazy.FindStringSubmatchIndex(s), plain.FindStringSubmatchIndex(s)},
			"FindSubmatch":               {lazy.FindSubmatch(b), plain.FindSubmatch(b)},
			"Match":                      {lazy.Match(b), plain.Match(b)},
			"MatchString":                {lazy.MatchString(s), plain.MatchString(s)},
			"ReplaceAll":                 {lazy.ReplaceAll(b, []byte("$2")), plain.ReplaceAll(b, []byte("$2"))},
			"ReplaceAllString":           {lazy.ReplaceAllString(s, "$1"), plain.ReplaceAllString(s, "$1")},
			"ReplaceAllStringFunc":       {lazy.ReplaceAllStringFunc(s, strings.ToUpper), plain.ReplaceAllStringFunc(s, strings.ToUpper)},
			"Split":                      {lazy.Split(s, -1), plain.Split(s, -1)},
			"String":                     {lazy.String(), plain.String()},
		} {
			if difference := cmp.Diff(pair[1], pair[0]); difference != "" {
				t.Errorf("%s of %q:\n%s", name, s, difference)
			}
		}
	}
}

// TestWrongOneFailsInTests: a test finds an expression that is wrong without using it.
func TestWrongOneFailsInTests(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a wrong expression was taken")
		}
	}()
	New(`(`)
}
