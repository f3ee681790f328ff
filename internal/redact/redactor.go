package redact

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// MinLength is how many characters a secret needs before it is searched for by
// its value. A shorter one ("admin", "8080") also turns up in ordinary text:
// masking it there would spoil the text and, by the gaps, give the secret away.
// It is still masked wherever it is a [Secret].
const MinLength = 8

// Redactor masks known secrets in text. The zero value knows none. It is safe
// for concurrent use.
type Redactor struct {
	adding sync.Mutex // held while known is replaced
	known  atomic.Pointer[known]
}

// known is one unchanging set of secrets. Replacing the whole set lets readers
// go without a lock.
type known struct {
	secrets  []string
	replacer *strings.Replacer
}

// New returns a redactor that knows the given secrets.
func New(values ...string) *Redactor {
	r := new(Redactor)
	r.Add(values...)
	return r
}

// minLine is how many characters a line of a secret needs to be searched for by
// itself. It is well above [MinLength], since lines are not chosen as secrets are:
// a short one could be ordinary text.
const minLine = 16

// Add makes more secrets known. Texts that pass from then on are masked. White
// space around a value does not count, and values shorter than [MinLength] are
// left out. A secret of several lines, such as a private key, is also found line
// by line.
func (r *Redactor) Add(values ...string) {
	r.adding.Lock()
	defer r.adding.Unlock()

	var secrets []string
	if before := r.known.Load(); before != nil {
		secrets = slices.Clone(before.secrets)
	}
	count := len(secrets)
	for _, value := range values {
		value = strings.TrimSpace(value)
		if utf8.RuneCountInString(value) < MinLength {
			continue
		}
		for _, part := range append(secretLines(value), value) {
			if !slices.Contains(secrets, part) {
				secrets = append(secrets, part)
			}
		}
	}
	if len(secrets) > count {
		r.known.Store(&known{secrets: secrets, replacer: newReplacer(secrets)})
	}
}

// secretLines are the lines of a secret that has several, as they turn up where a
// program writes or reads it line by line. What frames a key (-----BEGIN) and
// prose are no secrets.
func secretLines(secret string) []string {
	if !strings.ContainsAny(secret, "\r\n") {
		return nil
	}
	var all []string
	for line := range strings.FieldsFuncSeq(secret, func(char rune) bool { return char == '\r' || char == '\n' }) {
		line = strings.TrimSpace(line)
		if utf8.RuneCountInString(line) >= minLine && !strings.HasPrefix(line, "-----") && !strings.ContainsFunc(line, unicode.IsSpace) {
			all = append(all, line)
		}
	}
	return all
}

// newReplacer masks every form of every secret. At one place in the text the
// longest form wins, so that nothing of a secret which begins like another one
// is left standing.
func newReplacer(secrets []string) *strings.Replacer {
	var all []string
	for _, secret := range secrets {
		all = append(all, forms(secret)...)
	}
	slices.SortFunc(all, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	all = slices.Compact(all)
	pairs := make([]string, 0, 2*len(all))
	for _, form := range all {
		pairs = append(pairs, form, Mask)
	}
	return strings.NewReplacer(pairs...)
}

// String returns the text with every known secret masked, also where it is
// written in base64 or hexadecimal digits, escaped for a URL, or quoted for JSON or
// Go. It sees whole
// texts only: a secret that is split over two calls is not found.
func (r *Redactor) String(text string) string {
	now := r.known.Load()
	if now == nil || len(text) < MinLength {
		return text
	}
	return now.replacer.Replace(text)
}
