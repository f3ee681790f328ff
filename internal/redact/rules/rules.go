package rules

import (
	"slices"
	"strings"
	"sync"

	"github.com/toryo-dev/toryo/internal/redact"
)

// First masks the secrets that somebody knows of. It is the redactor of the
// configuration's secrets.
type First interface {
	String(text string) string
}

// Redactor masks known secrets, and then what the rules find. It may be used by
// several goroutines. The same text always gives the same result.
type Redactor struct {
	first    First
	detector *detector
}

// loading is shared: the rules are the same for all.
var loading = sync.OnceValues(func() (*detector, error) { return load(gitleaks) })

// New returns a redactor that has first before the rules; nil means none. The
// rules are loaded now, which takes some milliseconds once.
func New(first First) (*Redactor, error) {
	detector, err := loading()
	if err != nil {
		return nil, err
	}
	return &Redactor{first: first, detector: detector}, nil
}

// shortest is the length below which no text has a secret in it that a rule could
// find.
const shortest = 16

// String returns the text with secrets masked.
func (r *Redactor) String(text string) string {
	if r.first != nil {
		text = r.first.String(text)
	}
	if len(text) < shortest {
		return text
	}
	var secrets []string
	for _, secret := range r.detector.find(text) {
		if secret != redact.Mask {
			secrets = append(secrets, secret)
		}
	}
	if len(secrets) == 0 {
		return text
	}
	// The longest first, whatever the order of the rules.
	slices.SortFunc(secrets, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	pairs := make([]string, 0, 2*len(secrets))
	for _, secret := range slices.Compact(secrets) {
		pairs = append(pairs, secret, redact.Mask)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
