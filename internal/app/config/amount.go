package config

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// ByteSize is a number of bytes. In the file it is written as plain bytes or
// with a unit: 512MiB.
type ByteSize int64

// The units of a size.
const (
	KiB ByteSize = 1 << (10 * (iota + 1))
	MiB
	GiB
	TiB
)

// sizeUnits are the units from the largest to the smallest.
var sizeUnits = []struct {
	name string
	size ByteSize
}{{"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}, {"B", 1}}

// String writes the size with the largest unit that fits without a fraction.
func (s ByteSize) String() string {
	for _, unit := range sizeUnits {
		if s != 0 && s%unit.size == 0 && unit.size > 1 {
			return strconv.FormatInt(int64(s/unit.size), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// parseSize reads a size. Units of a thousand are refused: whether GB means them
// or not is a matter of taste.
func parseSize(text string) (ByteSize, *complaint) {
	const hint = "write it in whole numbers like 512MiB or 2GiB"
	digits := strings.TrimRight(text, "BKMGTi")
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || strings.TrimLeft(digits, "0123456789") != "" {
		return 0, complain(hint, "%s is not a size", show(text))
	}
	name := strings.TrimPrefix(text, digits)
	if name == "" {
		return ByteSize(number), nil
	}
	for _, unit := range sizeUnits {
		if unit.name != name {
			continue
		}
		if number > math.MaxInt64/int64(unit.size) {
			return 0, complain(hint, "%s is too large", show(text))
		}
		return ByteSize(number) * unit.size, nil
	}
	return 0, complain("the units are B, KiB, MiB, GiB and TiB", "%s has a unit that is not known here", show(text))
}

func parseDuration(text string) (time.Duration, *complaint) {
	length, err := time.ParseDuration(text)
	if err != nil {
		return 0, complain("write it like 30s, 5m or 2h", "%s is not a duration", show(text))
	}
	return length, nil
}

// shownDuration writes a duration without the zeros at its end: 10m, not 10m0s.
func shownDuration(length time.Duration) string {
	text := length.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Command is a program with its arguments.
type Command []string

// checkCommand lets the words of a command be what programs can be given.
func checkCommand(words []string) *complaint {
	for i, word := range words {
		if i == 0 && strings.TrimSpace(word) == "" {
			return complain("begin with the name of a program", "the command has no program")
		}
		if strings.Contains(word, "\x00") {
			return complain("remove it", "word %d of the command has a zero byte", i+1)
		}
	}
	return nil
}
