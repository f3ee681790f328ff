package config

import (
	"fmt"
	"strings"
)

// referenceWidth is where the texts of the reference are wrapped.
const referenceWidth = 88

// Reference lists every key with its default, its environment variable and what it is for,
// from the schema.
func Reference() string {
	r := &reference{}
	r.members(keys().root)
	return r.text.String()
}

type reference struct{ text strings.Builder }

// members lists the keys of a section, then its sections.
func (r *reference) members(s *section) {
	for _, m := range s.members {
		if m.key != nil && m.as == "" {
			r.key(m.key)
		}
	}
	for _, m := range s.members {
		if m.section != nil && m.as == "" {
			r.section(m.section)
		}
	}
	if alike := s.alike(); alike != "" {
		r.wrap("  ", "Also, as in "+alike+": "+strings.Join(s.namesAs(alike), ", ")+".")
	}
}

// alike is the section whose keys this one has too, or nothing.
func (s *section) alike() string {
	for _, m := range s.members {
		if m.as != "" {
			return m.as
		}
	}
	return ""
}

func (r *reference) section(s *section) {
	fmt.Fprintf(&r.text, "\n%s\n", s.path)
	r.wrap("  ", s.about)
	r.members(s)
	switch {
	case s.entries == nil:
	case s.entries.section != nil:
		r.wrap("  ", "Entries have names of your own, and these keys:")
		r.members(s.entries.section)
	default:
		r.wrap("  ", "Entries have names of your own, and a value each.")
	}
}

// key says what a key is for. A secret has no default and is not in the file.
func (r *reference) key(k *key) {
	about := k.about
	if len(k.enum) > 0 {
		about += " One of: " + strings.Join(k.enum, ", ") + "."
	}
	head := "  " + k.path
	switch value := yamlValue(k); {
	case k.kind == secretKind:
		head += " (secret)"
		about += " Give it by the variable, or in a file that " + k.fileKey().name + " names." + wellKnownNote(k)
	case value != "" && value != `""`:
		head += ": " + value
	}
	if variable := k.variable(); variable != "" {
		head += "  [" + variable + "]"
	}
	r.text.WriteString(head + "\n")
	r.wrap("      ", about)
}

// wrap writes prose, with spaces before each line.
func (r *reference) wrap(indent, prose string) {
	line := indent
	for word := range strings.FieldsSeq(prose) {
		if len(line)+len(word) > referenceWidth && line != indent {
			r.text.WriteString(strings.TrimRight(line, " ") + "\n")
			line = indent
		}
		line += word + " "
	}
	if line != indent {
		r.text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
