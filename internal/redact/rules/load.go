package rules

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
)

//go:embed gitleaks.toml
var gitleaks []byte

// generic is the rule that guesses by the look of an assignment. It also hits
// ordinary source text, and a model that is shown masked source cannot edit it.
const generic = "generic-api-key"

// file is what is used of gitleaks' configuration.
type file struct {
	Allowlist allowlist `toml:"allowlist"`
	Rules     []struct {
		ID          string      `toml:"id"`
		Path        string      `toml:"path"`
		Regex       string      `toml:"regex"`
		SecretGroup int         `toml:"secretGroup"`
		Entropy     float64     `toml:"entropy"`
		Keywords    []string    `toml:"keywords"`
		Allowlists  []allowlist `toml:"allowlists"`
	} `toml:"rules"`
}

// allowlist says what a rule hits and what is no secret. Paths are not looked at: a
// text has none.
type allowlist struct {
	Regexes     []string `toml:"regexes"`
	StopWords   []string `toml:"stopwords"`
	RegexTarget string   `toml:"regexTarget"`
	Condition   string   `toml:"condition"`
}

// detector finds secrets. It may be used by several goroutines.
type detector struct {
	keywords *keywords // its numbers are those of the rules
	rules    []rule
	allowed  exceptions
}

type rule struct {
	pattern func() *regexp.Regexp
	group   int     // which group is the secret; 0 means the first that is not empty
	entropy float64 // what a secret's has to be above; 0 means any
	allowed exceptions
}

// exceptions are what is no secret.
type exceptions struct {
	patterns []func() *regexp.Regexp
	words    []string // in small letters
}

// compiled is a pattern that is compiled when it is first used: few texts have the
// keywords of more than some rules.
func compiled(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// load makes a detector of gitleaks' rules, without those for files of a certain
// name and without the generic one.
func load(text []byte) (*detector, error) {
	var read file
	if err := toml.Unmarshal(text, &read); err != nil {
		return nil, fmt.Errorf("read the rules: %w", err)
	}
	d := &detector{}
	var err error
	if d.allowed, err = exceptionsOf([]allowlist{read.Allowlist}); err != nil {
		return nil, err
	}
	var words [][]string
	for _, r := range read.Rules {
		if r.ID == generic || r.Path != "" {
			continue
		}
		if r.Regex == "" || len(r.Keywords) == 0 {
			return nil, fmt.Errorf("the rule %s has no pattern or no keywords", r.ID)
		}
		made := rule{pattern: compiled(r.Regex), group: r.SecretGroup, entropy: r.Entropy}
		if made.allowed, err = exceptionsOf(r.Allowlists); err != nil {
			return nil, fmt.Errorf("the rule %s: %w", r.ID, err)
		}
		d.rules = append(d.rules, made)
		words = append(words, r.Keywords)
	}
	d.keywords = newKeywords(words)
	return d, nil
}

func exceptionsOf(lists []allowlist) (exceptions, error) {
	var all exceptions
	for _, list := range lists {
		if list.RegexTarget != "" || list.Condition != "" {
			return exceptions{}, fmt.Errorf("an allowlist with the target %q and the condition %q is not supported", list.RegexTarget, list.Condition)
		}
		for _, pattern := range list.Regexes {
			all.patterns = append(all.patterns, compiled(pattern))
		}
		for _, word := range list.StopWords {
			all.words = append(all.words, strings.ToLower(word))
		}
	}
	return all, nil
}
