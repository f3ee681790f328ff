package config

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

//go:embed header.txt
var templateHeader string

// templateWidth is where the comments of the template are wrapped.
const templateWidth = 80

// Template is the commented configuration file that "toryo config init" writes.
// It is made from the schema: every key is there with its description and its
// default, and the whole says the same as no file at all.
func Template() []byte {
	t := new(template)
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

type template struct{ text strings.Builder }

func (t *template) line(indent, text string) { t.text.WriteString(indent + text + "\n") }

// comment writes prose, wrapped, behind "# ".
func (t *template) comment(indent, prose string) {
	line := indent + "#"
	for word := range strings.FieldsSeq(prose) {
		if len(line)+1+len(word) > templateWidth {
			t.line("", line)
			line = indent + "#"
		}
		line += " " + word
	}
	t.line("", line)
}

// members writes the keys and sections of a section.
func (t *template) members(s *section, indent string) {
	for i, m := range s.members {
		described := m.section != nil || m.key.about != ""
		if i > 0 && described && (indent == "" || m.section != nil) {
			t.text.WriteString("\n")
		}
		if m.section != nil {
			t.comment(indent, m.section.about)
			t.line(indent, m.section.name+":")
			t.members(m.section, indent+"  ")
			continue
		}
		t.key(m.key, indent)
	}
}

func (t *template) key(k *key, indent string) {
	if k.kind == secretKind {
		t.comment(indent, fmt.Sprintf("%s (secret): %s Give it by %s, or by %s.", k.name, k.about, k.variable(), keys().fileKey(k).name))
		return
	}
	about := k.about
	if len(k.enum) > 0 {
		about += " One of: " + strings.Join(k.enum, ", ") + "."
	}
	if k.example != "" {
		about += " For example: " + k.example
	}
	if about != "" {
		t.comment(indent, about)
	}
	mark := "#"
	if k.usual {
		mark = ""
	}
	t.line(indent, strings.TrimRight(mark+k.name+": "+yamlValue(k), " "))
}

// plainYAML is text that YAML takes for itself without quotes.
var plainYAML = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./-]*([: ][A-Za-z0-9_./-]+)*$`)

// yamlValue is the default of a key as YAML.
func yamlValue(k *key) string {
	switch {
	case k.kind.isList():
		return "[" + strings.ReplaceAll(k.fallback, ",", ", ") + "]"
	case k.kind == textKind && !plainYAML.MatchString(k.fallback):
		return strconv.Quote(k.fallback)
	}
	return k.fallback
}
