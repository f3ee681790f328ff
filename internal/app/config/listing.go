package config

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/toryo-dev/toryo/internal/redact"
)

// Setting is one key as it is in force.
type Setting struct {
	Key    string
	Value  string // a secret is masked; "" when nothing is set
	Origin Origin
}

// Settings lists the whole configuration as it is in force, in the order of the
// template, with secrets masked. The configuration must be the one that came with
// the report.
func (r Report) Settings(c Config) []Setting {
	redactor := c.Redactor()
	var all []Setting
	for _, k := range keys().inForce(&c) {
		setting := Setting{
			Key:    redactor.String(k.path), // a name of the user's own may be a slip of the hand
			Value:  redactor.String(shown(k.load(&c))),
			Origin: r.Origin(k.path),
		}
		if setting.Origin.wellKnown {
			setting.Value = redact.Mask // that of an override is not in its section
		}
		all = append(all, setting)
	}
	return all
}

// Print writes the settings as lines of "key = value  (origin)".
func (r Report) Print(w io.Writer, c Config) error {
	for _, setting := range r.Settings(c) {
		value := setting.Value
		if value == "" || strings.ContainsFunc(value, unicode.IsControl) || strings.TrimSpace(value) != value {
			value = strconv.Quote(value)
		}
		if _, err := fmt.Fprintf(w, "%s = %s  (%s)\n", setting.Key, value, setting.Origin); err != nil {
			return fmt.Errorf("write the settings: %w", err)
		}
	}
	return nil
}

// shown writes a value as it is written in a variable; a secret is masked.
func shown(value any) string {
	switch value := value.(type) {
	case redact.Secret:
		if value == "" {
			return ""
		}
		return redact.Mask
	case []string:
		return strings.Join(value, ",")
	case Command:
		return strings.Join(value, ",")
	case float64:
		return plain(value)
	case time.Duration:
		return shownDuration(value)
	}
	if at := reflect.ValueOf(value); at.Kind() == reflect.Pointer {
		if at.IsNil() {
			return ""
		}
		return shown(at.Elem().Interface())
	}
	return fmt.Sprint(value)
}
