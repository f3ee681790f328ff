package config

import (
	"fmt"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/toryo-dev/toryo/internal/redact"
)

// complaint says what is wrong with a value and how to mend it.
type complaint struct {
	message string
	mend    string
}

func complain(mend, format string, args ...any) *complaint {
	return &complaint{message: fmt.Sprintf(format, args...), mend: mend}
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
	if strings.IndexFunc(text, unicode.IsControl) >= 0 {
		return complain("write it on one line", "the value has a line break or another control character")
	}
	if text == "" && k.fallback == "" && k.entry == "" {
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

// formats are the rules that the tag "format" names.
var formats = map[string]func(string) *complaint{
	"address":  checkAddress,
	"image":    checkWord,
	"label":    checkLabel,
	"name":     checkName,
	"path":     checkPath,
	"postgres": checkPostgres,
	"project":  checkProject,
	"url":      checkURL,
	"word":     checkWord,
}

func checkAddress(text string) *complaint {
	const mend = "write it like 127.0.0.1:8750"
	host, port, err := net.SplitHostPort(text)
	if err != nil || strings.ContainsFunc(host, unicode.IsSpace) {
		return complain(mend, "%s is not an address of the form host:port", show(text))
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(number, 10) != port {
		return complain(mend, "%s has no port between 0 and 65535", show(text))
	}
	return nil
}

func checkWord(text string) *complaint {
	if text == "" {
		return complain("give it a value or remove the line", "the value is empty")
	}
	if strings.ContainsFunc(text, unicode.IsSpace) {
		return complain("remove the spaces", "%s has a space in it", show(text))
	}
	return nil
}

func checkLabel(text string) *complaint {
	if strings.TrimSpace(text) == "" {
		return complain("remove the line to use the default", "the label is empty")
	}
	if strings.TrimSpace(text) != text {
		return complain("remove the spaces", "%s begins or ends with a space", show(text))
	}
	return nil
}

func checkName(text string) *complaint {
	if strings.HasPrefix(text, "@") {
		return complain("write it without the @", "%s begins with @", show(text))
	}
	if strings.Contains(text, "/") {
		return complain("give the name alone", "%s has a / in it", show(text))
	}
	return checkWord(text)
}

func checkPath(text string) *complaint {
	if text == "" {
		return complain("remove the line to use the default", "the path is empty")
	}
	return nil
}

func checkProject(text string) *complaint {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || slices.Contains(parts, "") {
		return complain("write it like group/project", "%s is not a project of the form group/name", show(text))
	}
	return checkWord(text)
}

// checkURL does not repeat the value where it can hold a password.
func checkURL(text string) *complaint {
	const mend = "write it like https://host or https://host:port/path"
	address, err := url.Parse(text)
	switch {
	case err != nil:
		return complain(mend, "the value is not a URL")
	case address.User != nil:
		return complain("give the credential as a secret of its own", "the URL has a user name or password in it")
	case address.Scheme != "http" && address.Scheme != "https":
		return complain(mend, "%s does not begin with http:// or https://", show(text))
	case address.Hostname() == "":
		return complain(mend, "%s has no host", show(text))
	case address.RawQuery != "" || address.ForceQuery || address.Fragment != "":
		return complain("end it before the ? or #", "the URL has a query or a fragment")
	}
	return nil
}

// checkPostgres accepts both forms that PostgreSQL's programs do, and repeats
// nothing of a value that holds a password.
func checkPostgres(text string) *complaint {
	const mend = "write it like postgres://user:password@host:5432/database"
	if strings.Contains(text, "://") {
		address, err := url.Parse(text)
		if err != nil || address.Scheme != "postgres" && address.Scheme != "postgresql" {
			return complain(mend, "the value is not a URL of PostgreSQL")
		}
		return nil
	}
	if !strings.Contains(text, "=") {
		return complain(mend, "the value is not a URL of PostgreSQL")
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
