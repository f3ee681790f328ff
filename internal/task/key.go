package task

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Forge names one configured forge: "github", "gitlab", "gitea" or "board".
type Forge string

// The forges that Toryo can work with.
const (
	GitHub Forge = "github"
	GitLab Forge = "gitlab"
	Gitea  Forge = "gitea"
	Board  Forge = "board"
)

// Forges lists every forge in the order in which they are shown.
var Forges = []Forge{GitHub, GitLab, Gitea, Board}

// ItemKind says whether an item is an issue or a pull (merge) request.
type ItemKind string

// The kinds of item.
const (
	Issue ItemKind = "issue"
	Pull  ItemKind = "pull"
)

// Key is the address of one item: a forge, a repository on it, and an issue or
// a pull request there. It is comparable and may be a map key.
type Key struct {
	Forge      Forge
	Repository string // "owner/name"; GitLab allows "group/subgroup/name"
	Kind       ItemKind
	Number     int64
}

// Repository is the address of a repository: a forge, and its name there. It is comparable
// and may be a map key.
type Repository struct {
	Forge Forge
	Name  string // as in [Key]
}

// String is the repository as people read it: "github:owner/name".
func (r Repository) String() string { return string(r.Forge) + ":" + r.Name }

// Repo is the repository that the item is in.
func (k Key) Repo() Repository { return Repository{k.Forge, k.Repository} }

// mark separates repository and number, as people write it: "#" for issues and
// GitLab's "!" for pull requests, on every forge, so that both fit one text.
func (k ItemKind) mark() string {
	if k == Pull {
		return "!"
	}
	return "#"
}

// String is the key as people write and read it: "github:owner/name#12", or
// "github:owner/name!12" for a pull request. [ParseKey] reads it back.
func (k Key) String() string {
	return string(k.Forge) + ":" + k.Repository + k.Kind.mark() + strconv.FormatInt(k.Number, 10)
}

// Validate says what is wrong with the key, if anything.
func (k Key) Validate() error {
	if !k.Forge.known() {
		return Errorf(Invalid, "unknown forge %q in task key; it is one of github, gitlab, gitea, board", string(k.Forge))
	}
	if k.Kind != Issue && k.Kind != Pull {
		return Errorf(Invalid, "unknown item kind %q in task key; it is issue or pull", string(k.Kind))
	}
	if k.Number < 1 {
		return Errorf(Invalid, "item number %d in task key is not positive", k.Number)
	}
	return validateRepository(k.Repository)
}

func (f Forge) known() bool { return slices.Contains(Forges, f) }

func validateRepository(name string) error {
	parts := strings.Split(name, "/")
	if len(parts) < 2 {
		return Errorf(Invalid, "repository %q in task key is not of the form owner/name", name)
	}
	for _, part := range parts {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "#!: \t\r\n\x00") {
			return Errorf(Invalid, "repository %q in task key has the bad part %q", name, part)
		}
	}
	return nil
}

// ParseKey reads what [Key.String] writes.
func ParseKey(text string) (Key, error) {
	forge, rest, found := strings.Cut(text, ":")
	at := strings.LastIndexAny(rest, "#!")
	if !found || at < 0 {
		return Key{}, Errorf(Invalid, "task key %q is not of the form forge:owner/name#number", text)
	}
	number, err := strconv.ParseInt(rest[at+1:], 10, 64)
	if err != nil {
		return Key{}, Wrap(Invalid, err, fmt.Sprintf("task key %q has a bad number", text))
	}
	key := Key{Forge: Forge(forge), Repository: rest[:at], Kind: Issue, Number: number}
	if rest[at] == '!' {
		key.Kind = Pull
	}
	return key, key.Validate()
}

// Keys is a list of keys in one comparable value: one a line.
type Keys string

// KeysOf makes a list of keys.
func KeysOf(keys ...Key) Keys {
	lines := make([]string, len(keys))
	for i, key := range keys {
		lines[i] = key.String()
	}
	return Keys(strings.Join(lines, "\n"))
}

// List returns the keys. What is not a key is left out: [KeysOf] writes none.
func (k Keys) List() []Key {
	var keys []Key
	for line := range strings.Lines(string(k)) {
		if key, err := ParseKey(strings.TrimSuffix(line, "\n")); err == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// Contains reports whether the key is in the list.
func (k Keys) Contains(key Key) bool { return slices.Contains(k.List(), key) }
