package config

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

//go:embed header.txt
var templateHeader string

// templateWidth is where the comments of the template are wrapped.
const templateWidth = 80

// Template is the commented configuration file that "toryo config init" writes.
// It is made from the schema: every key is there with its description and its
// default, and the whole says the same as no file at all.
func Template() []byte {
	t := &template{width: templateWidth}
	for i, paragraph := range strings.Split(templateHeader, "\n\n") {
		if i > 0 {
			t.line("", "#")
		}
		t.comment("", paragraph)
	}
	t.text.WriteString("\n")
	t.members(keys().root, "")
	return []byte(t.text.String())
}

type template struct {
	text  strings.Builder
	width int
}

func (t *template) line(indent, text string) { t.text.WriteString(indent + text + "\n") }

// comment writes prose, wrapped, behind "# ".
func (t *template) comment(indent, prose string) {
	line := indent + "#"
	for word := range strings.FieldsSeq(prose) {
		if len(line)+1+len(word) > t.width {
			t.line("", line)
			line = indent + "#"
		}
		line += " " + word
	}
	t.line("", line)
}

// members writes the keys and sections of a section.
func (t *template) members(s *section, indent string) {
	said := ""
	for i, m := range s.members {
		described := m.section != nil || m.key.about != ""
		if i > 0 && described && m.as == "" && (indent == "" || m.section != nil) {
			t.text.WriteString("\n")
		}
		switch {
		case m.as != "":
			if m.as != said {
				t.comment(indent, fmt.Sprintf("Also, as in %s: %s.", m.as, strings.Join(s.namesAs(m.as), ", ")))
			}
			said = m.as
		case m.section != nil:
			t.section(m.section, indent)
		default:
			t.key(m.key, indent)
		}
	}
}

// namesAs lists what is in a section as in another.
func (s *section) namesAs(other string) []string {
	var names []string
	for _, m := range s.members {
		if m.as == other && (m.key == nil || m.key.kind != secretKind) {
			names = append(names, m.name())
		}
	}
	return names
}

func (t *template) section(s *section, indent string) {
	about := s.about
	named := s.entries != nil && s.entries.section != nil
	if named {
		about += " Environment variables do not reach in here. An example, commented out as a whole:"
	}
	t.comment(indent, about)
	t.line(indent, s.name+":")
	t.members(s, indent+"  ")
	if named {
		t.example(s.entrySection(s.entries.example), indent+"  ")
	}
}

// example writes an entry that is commented out as a whole.
func (t *template) example(entry *section, indent string) {
	whole := &template{width: t.width - len(indent) - 1}
	whole.line("", entry.name+":")
	whole.members(entry, "  ")
	for line := range strings.Lines(whole.text.String()) {
		t.text.WriteString(indent + "#" + line)
	}
}

func (t *template) key(k *key, indent string) {
	if k.kind == secretKind {
		by := k.fileKey().name
		if k.variable() != "" {
			by = k.variable() + ", or by " + by
		}
		t.comment(indent, fmt.Sprintf("%s (secret): %s Give it by %s.", k.name, k.about, by)+wellKnownNote(k))
		return
	}
	about := k.about
	if len(k.enum) > 0 {
		about += " One of: " + strings.Join(k.enum, ", ") + "."
	}
	value := yamlValue(k)
	switch {
	case k.example != "" && k.usual && k.in.inEntry: // only in an example as a whole
		value = k.example
	case k.example != "":
		about += " For example: " + k.example
	}
	if about != "" {
		t.comment(indent, about)
	}
	mark := "#"
	if k.usual {
		mark = ""
	}
	t.line(indent, strings.TrimRight(mark+k.name+": "+value, " "))
}

// plainYAML is text that YAML takes for itself without quotes.
var plainYAML = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_./-]*([: ][A-Za-z0-9_./-]+)*$`)

// yamlValue is the default of a key as YAML.
func yamlValue(k *key) string {
	switch {
	case k.kind.isList():
		return "[" + strings.ReplaceAll(k.fallback, ",", ", ") + "]"
	case k.kind == textKind && !k.maybe && !plainYAML.MatchString(k.fallback):
		return strconv.Quote(k.fallback)
	}
	return k.fallback
}
