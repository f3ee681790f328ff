package rules

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rs/zerolog"
	"github.com/zricethezav/gitleaks/v8/detect"
	"github.com/zricethezav/gitleaks/v8/logging"

	"github.com/toryo-dev/toryo/internal/redact"
)

// generic is the rule that guesses by the look of an assignment. It also hits
// ordinary source text, and a model that is shown masked source cannot edit it.
const generic = "generic-api-key"

// First masks the secrets that somebody knows of. It is the redactor of the
// configuration's secrets.
type First interface {
	String(text string) string
}

// Redactor masks known secrets, and then what the rules find. It may be used by
// several goroutines. The same text always gives the same result.
type Redactor struct {
	first    First
	detector *detect.Detector
}

// loading is shared: the library keeps its configuration in a global variable.
var loading = sync.OnceValues(func() (*detect.Detector, error) {
	logging.Logger = zerolog.Nop()
	detector, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		return nil, fmt.Errorf("load the detection rules: %w", err)
	}
	delete(detector.Config.Rules, generic)
	// A text from outside could switch the rules off for its lines.
	detector.IgnoreGitleaksAllow = true
	return detector, nil
})

// New returns a redactor that has first before the rules; nil means none. The
// rules are loaded now, which takes some tens of milliseconds once.
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
	for _, finding := range r.detector.DetectString(text) {
		if finding.Secret != "" && finding.Secret != redact.Mask {
			secrets = append(secrets, finding.Secret)
		}
	}
	if len(secrets) == 0 {
		return text
	}
	// The longest first, whatever the order of the rules, which is random.
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
