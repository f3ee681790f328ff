package config

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]ByteSize{
		"0": 0, "512": 512, "512B": 512, "1KiB": 1024, "10MiB": 10 << 20, "2GiB": 2 << 30, "3TiB": 3 << 40, "8388607TiB": 8388607 << 40,
	} {
		if got, wrong := parseSize(text); wrong != nil || got != want {
			t.Errorf("%q is %d (%v), want %d", text, got, wrong, want)
		}
	}
	for text, want := range map[string]string{
		"":                    `"" is not a size`,
		"GiB":                 `"GiB" is not a size`,
		"much":                `"much" is not a size`,
		"-1GiB":               `"-1GiB" is not a size`,
		"+1":                  `"+1" is not a size`,
		"1.5GiB":              `"1.5GiB" is not a size`,
		"1_000":               `"1_000" is not a size`,
		"0x10":                `"0x10" is not a size`,
		"4 GiB":               `"4 GiB" is not a size`,
		"4GB":                 `"4GB" has a unit that is not known here`,
		"4G":                  `"4G" has a unit that is not known here`,
		"4iGB":                `"4iGB" has a unit that is not known here`,
		"8388608TiB":          `"8388608TiB" is too large`,
		"9223372036854775808": `"9223372036854775808" is not a size`,
	} {
		if got, wrong := parseSize(text); wrong == nil || wrong.message != want {
			t.Errorf("%q is %d (%+v), want %s", text, got, wrong, want)
		}
	}
}

func TestWhatASizeSaysIsTheSameSize(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size := ByteSize(rapid.Int64Range(0, math.MaxInt64>>40).Draw(t, "number")) << rapid.SampledFrom([]int{0, 10, 20, 30, 40}).Draw(t, "shift")
		if got, wrong := parseSize(size.String()); wrong != nil || got != size {
			t.Fatalf("%d is shown as %s, which is %d (%v)", size, size, got, wrong)
		}
	})
	for size, want := range map[ByteSize]string{0: "0", 1000: "1000", 1536 * MiB: "1536MiB", 4 * GiB: "4GiB", TiB: "1TiB"} {
		if size.String() != want {
			t.Errorf("%d is shown as %s, want %s", size, size, want)
		}
	}
}

func TestWhatADurationSaysIsTheSameDuration(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		length := time.Duration(rapid.Int64Range(0, 1000).Draw(t, "number")) * rapid.SampledFrom([]time.Duration{1, time.Millisecond, time.Second, time.Minute, time.Hour}).Draw(t, "unit")
		if got, wrong := parseDuration(shown(length)); wrong != nil || got != length {
			t.Fatalf("%v is shown as %s, which is %v (%v)", length, shown(length), got, wrong)
		}
	})
	for length, want := range map[time.Duration]string{0: "0s", 90 * time.Second: "1m30s", 10 * time.Minute: "10m", 20 * time.Second: "20s", 2 * time.Hour: "2h", 90 * time.Minute: "1h30m"} {
		if shown(length) != want {
			t.Errorf("%v is shown as %s, want %s", length, shown(length), want)
		}
	}
	for _, text := range []string{"", "30", "5 m", "1d", "soon"} {
		if got, wrong := parseDuration(text); wrong == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
