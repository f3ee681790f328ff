package config

import (
	"testing"

	"pgregory.net/rapid"
)

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"token", "token", 0}, {"tokn", "token", 1}, {"tokken", "token", 1},
		{"tokan", "token", 1}, {"tokne", "token", 1}, {"owner", "token", 4}, {"日本", "日本語", 1},
	} {
		if got := distance(test.a, test.b); got != test.want {
			t.Errorf("from %q to %q are %d steps, want %d", test.a, test.b, got, test.want)
		}
	}
}

// One slip in any key of the schema finds the key again, or another that is as
// near.
func TestOneSlipFindsTheKey(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := keys()
		k := rapid.SampledFrom(s.keys).Draw(t, "key")
		var siblings []string
		for _, other := range s.keys {
			siblings = append(siblings, other.name)
		}
		at := rapid.IntRange(0, len(k.name)-1).Draw(t, "at")
		slip := k.name[:at] + rapid.SampledFrom([]string{"", "q", k.name[at:at+1] + "q"}).Draw(t, "letter") + k.name[at+1:]
		if meant := nearest(slip, siblings); meant == "" || distance(slip, meant) > distance(slip, k.name) {
			t.Fatalf("%q finds %q, not %q", slip, meant, k.name)
		}
	})
}
