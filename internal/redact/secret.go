package redact

import (
	"fmt"
	"io"
	"log/slog"
)

// Mask is what is shown in place of a secret.
const Mask = "••••"

// Secret is a string that never shows its value by accident: every way of
// formatting, logging or encoding it gives [Mask], and an empty one looks like
// any other. Only [Secret.Reveal] gives the value.
//
// Two libraries ask no method and show the value: fmt for an unexported field, and
// encoding/json for the key of a map. A Secret belongs in neither.
type Secret string

// Reveal gives the value, for the one place that needs it.
func (s Secret) Reveal() string { return string(s) }

// String gives [Mask].
func (Secret) String() string { return Mask }

// GoString gives [Mask].
func (Secret) GoString() string { return Mask }

// Format writes [Mask] whatever the verb, so that %x, %q and %d are safe too.
func (Secret) Format(state fmt.State, _ rune) {
	// fmt keeps the error of its writer itself.
	_, _ = io.WriteString(state, Mask)
}

// LogValue gives [Mask].
func (Secret) LogValue() slog.Value { return slog.StringValue(Mask) }

// MarshalText gives [Mask].
func (Secret) MarshalText() ([]byte, error) { return []byte(Mask), nil }

// MarshalJSON gives [Mask].
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + Mask + `"`), nil }
