package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/toryo-dev/toryo/internal/redact"
)

// complaint says what is wrong with a value and how to fix it.
type complaint struct {
	message string
	hint    string
	unread  bool // it is that a file cannot be opened
	secret  bool // the file is for a secret
}

func complain(hint, format string, args ...any) *complaint {
	return &complaint{message: fmt.Sprintf(format, args...), hint: hint}
}

// parse reads and checks a value as it is written in a variable or a flag. For a
// key that need not have a value, nil is none.
func (k *key) parse(text string) (any, *complaint) {
	if k.maybe && text == "" {
		return nil, nil
	}
	switch k.kind {
	case boolKind:
		return parseBool(text)
	case wholeKind:
		return k.parseWhole(text)
	case numberKind:
		return k.parseNumber(text)
	case durationKind:
		length, wrong := parseDuration(text)
		return length, k.checkRange(float64(length), text, wrong)
	case sizeKind:
		size, wrong := parseSize(text)
		return size, k.checkRange(float64(size), text, wrong)
	case listKind, commandKind:
		return k.parseList(text)
	case secretKind:
		if wrong := k.checkText(text); wrong != nil {
			return nil, wrong
		}
		return redact.Secret(text), nil
	default:
		if wrong := k.checkText(text); wrong != nil {
			return nil, wrong
		}
		return text, nil
	}
}

func parseBool(text string) (any, *complaint) {
	switch strings.ToLower(text) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return nil, complain("use true or false", "%s is not true or false", show(text))
}

func (k *key) parseWhole(text string) (any, *complaint) {
	number, err := strconv.Atoi(text)
	// A leading zero means octal to some readers of YAML and nothing to others.
	octal := len(strings.TrimLeft(text, "+-")) > 1 && strings.TrimLeft(text, "+-")[0] == '0'
	if err != nil || octal {
		return nil, complain("write it in plain digits, without quotes", "%s is not a whole number", show(text))
	}
	return number, k.checkRange(float64(number), text, nil)
}

func (k *key) parseNumber(text string) (float64, *complaint) {
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(number) || math.IsInf(number, 0) {
		return 0, complain("write it like 0.5, without quotes", "%s is not a number", show(text))
	}
	return number, k.checkRange(number, text, nil)
}

// checkRange checks an amount against the limits, unless it is wrong already.
func (k *key) checkRange(number float64, text string, wrong *complaint) *complaint {
	switch {
	case wrong != nil:
		return wrong
	case k.min != nil && number < *k.min:
		return complain("the least is "+k.amount(*k.min), "%s is too small", text)
	case k.max != nil && number > *k.max:
		return complain("the most is "+k.amount(*k.max), "%s is too large", text)
	}
	return nil
}

// amount writes a limit in the way of the key's kind.
func (k *key) amount(number float64) string {
	switch k.kind {
	case durationKind:
		return shown(time.Duration(number))
	case sizeKind:
		return shown(ByteSize(number))
	default:
		return plain(number)
	}
}

// parseList reads values that are separated by commas.
func (k *key) parseList(text string) (any, *complaint) {
	if text == "" {
		return []string(nil), nil
	}
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		items = append(items, strings.TrimSpace(item))
	}
	return items, k.checkList(items)
}

func (k *key) checkList(items []string) *complaint {
	if k.kind == commandKind {
		return checkCommand(items)
	}
	for i, item := range items {
		if item == "" {
			return complain("remove it", "entry %d is empty", i+1)
		}
		if wrong := k.checkText(item); wrong != nil {
			return wrong
		}
		if slices.Contains(items[:i], item) {
			return complain("remove one of them", "%s is listed twice", show(item))
		}
	}
	return nil
}

// checkText checks a text against the rules of the key. Nothing at all is right
// where the default is nothing, and means that the key is not set.
func (k *key) checkText(text string) *complaint {
	lines := text
	if k.lines {
		lines = strings.NewReplacer("\r", "", "\n", "").Replace(text)
	}
	if strings.ContainsFunc(lines, unicode.IsControl) {
		return complain("write it on one line", "the value has a line break or another control character")
	}
	if text == "" && k.fallback == "" && (k.entry == "" || k.inner != nil) {
		return nil
	}
	if len(k.enum) > 0 && !slices.Contains(k.enum, text) {
		return complain("use "+listed(k.enum), "%s is not allowed", show(text))
	}
	if check, ok := formats[k.format]; ok {
		return check(text)
	}
	return nil
}

// show quotes a value for a message, cut to a length that fits one line.
func show(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strconv.Quote(text)
}

// plain writes a number without an exponent.
func plain(number float64) string { return strconv.FormatFloat(number, 'f', -1, 64) }

// listed joins words as people do: "a, b or c".
func listed(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
