package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// entryPlaceholder stands for the name of an entry where there is none yet.
const entryPlaceholder = "NAME"

// entries are the rules of a section whose entries have names of the user's own.
// An entry is a text, and then it is a key, or it is a section.
type entries struct {
	field   []int    // index of the map in Config
	names   string   // rule for the names, see nameRules
	key     *key     // the rules for an entry that is a text, or nil
	section *section // what an entry that is a section holds, or nil
	example string   // name of the section that the template shows
}

// addEntries adds the rules of a map, and the entries that it has by default.
func (s *schema) addEntries(to *section, field reflect.StructField, index []int) {
	s.sections[to.path] = to
	to.entries = &entries{field: index, names: field.Tag.Get("names"), example: field.Tag.Get("example")}
	if field.Type.Elem().Kind() == reflect.Struct {
		to.entries.section = &section{path: join(to.path, entryPlaceholder), name: entryPlaceholder, about: to.about, inEntry: true}
		s.addFields(to.entries.section, field.Type.Elem(), nil)
		return
	}
	to.entries.key = &key{kind: textKind, field: index, format: field.Tag.Get("format"), in: to}
	for pair := range strings.FieldsSeq(field.Tag.Get("default")) {
		name, value, _ := strings.Cut(pair, "=")
		k := to.entryKey(name)
		k.fallback = value
		s.addKey(to, k)
	}
}

// entryKey is the key for an entry that is a text.
func (s *section) entryKey(name string) *key {
	k := *s.entries.key
	k.name, k.entry, k.path = name, name, join(s.path, pathName(name))
	return &k
}

// entrySection is the section for an entry of the given name.
func (s *section) entrySection(name string) *section {
	entry := s.entries.section.copyFor(s, name)
	entry.name = name
	return entry
}

// copyFor copies a part of what an entry holds for the entry of that name.
func (s *section) copyFor(of *section, name string) *section {
	place := func(path string) string {
		return join(of.path, pathName(name)) + strings.TrimPrefix(path, of.entries.section.path)
	}
	c := *s
	c.path, c.members = place(s.path), nil
	for _, m := range s.members {
		if m.section != nil {
			c.members = append(c.members, member{section: m.section.copyFor(of, name), as: m.as})
			continue
		}
		k := *m.key
		k.in, k.path, k.entry, k.field, k.inner = &c, place(k.path), name, of.entries.field, k.field
		c.members = append(c.members, member{key: &k, as: m.as})
	}
	return &c
}

// addEntry puts an entry with its defaults into the configuration.
func (s *section) addEntry(c *Config, name string) *section {
	all := reflect.ValueOf(c).Elem().FieldByIndex(s.entries.field)
	if all.IsNil() {
		all.Set(reflect.MakeMap(all.Type()))
	}
	of := all.Type().Elem()
	value := reflect.New(of).Elem()
	for i := range of.NumField() {
		if of.Field(i).Tag.Get("order") == "true" {
			value.Field(i).SetInt(int64(all.Len()))
		}
	}
	all.SetMapIndex(reflect.ValueOf(name), value)
	entry := s.entrySection(name)
	for _, k := range entry.all() {
		k.storeDefault(c)
	}
	return entry
}

// all lists the keys of a section and of those in it.
func (s *section) all() []*key {
	var all []*key
	for _, m := range s.members {
		if m.section != nil {
			all = append(all, m.section.all()...)
			continue
		}
		all = append(all, m.key)
	}
	return all
}

// entryNames lists the names of a section's entries.
func (s *section) entryNames(c *Config) []string {
	var names []string
	for _, name := range reflect.ValueOf(c).Elem().FieldByIndex(s.entries.field).MapKeys() {
		names = append(names, name.String())
	}
	slices.Sort(names)
	return names
}

// inForce lists the keys of a configuration: those of the schema, and after its
// section's keys every entry of the user's own.
func (s *schema) inForce(c *Config) []*key {
	var all []*key
	var visit func(*section)
	visit = func(at *section) {
		for _, m := range at.members {
			if m.section != nil {
				visit(m.section)
				continue
			}
			all = append(all, m.key)
		}
		if at.entries == nil {
			return
		}
		for _, name := range at.entryNames(c) {
			if at.entries.section != nil {
				all = append(all, at.entrySection(name).all()...)
			} else if _, listed := at.find(name); !listed {
				all = append(all, at.entryKey(name))
			}
		}
	}
	visit(s.root)
	return all
}

var plainEntryName = lazyregexp.New(`^[A-Za-z0-9_-]+$`)

// pathName writes the name of an entry so that it can stand between dots.
func pathName(name string) string {
	if plainEntryName.MatchString(name) {
		return name
	}
	return strconv.Quote(name)
}

// nameRules are the rules that the tag "names" names.
var nameRules = map[string]func(string) *complaint{
	"environment": func(name string) *complaint { return checkEntryName(name, "an environment", 64) },
	"label":       checkLabelName,
	"server":      func(name string) *complaint { return checkEntryName(name, "a server", 32) },
	"webhook":     func(name string) *complaint { return checkEntryName(name, "a webhook", 32) },
}

// checkName checks the name of an entry.
func (e *entries) checkName(name string) *complaint { return nameRules[e.names](name) }

func checkEntryName(name, what string, most int) *complaint {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	if len(name) > most {
		return complain(fmt.Sprintf("use at most %d characters", most), "this name for %s is too long", what)
	}
	if name == "" || strings.Trim(name, letters+"0123456789_-") != "" || !strings.Contains(letters, name[:1]) {
		return complain("begin with a small letter and go on with small letters, digits, _ and -", "this is not a name for %s", what)
	}
	return nil
}

func checkLabelName(name string) *complaint {
	const most = 255 // of any forge
	if len([]rune(name)) > most || strings.ContainsFunc(name, unicode.IsControl) {
		return complain("write the label as it is on the forge", "this is not a name for a label")
	}
	return checkLabel(name)
}

// readEntry takes an entry of the user's own out of the file.
func (l *loader) readEntry(doc *document, s *section, p pair) {
	if wrong := s.entries.checkName(p.key); wrong != nil {
		l.problem(l.inFile(p.at), join(s.path, shortName(p.key)), wrong)
		return
	}
	if s.entries.section != nil {
		l.readSection(doc, s.addEntry(&l.config, p.key), p.value, p.at)
		return
	}
	l.readKey(doc, s.entryKey(p.key), p)
}

// entryVariable is the key of a variable that adds an entry to a section. A
// variable cannot say which part of its name is the name of an entry, so it is
// a complaint where entries are sections.
func (l *loader) entryVariable(name string) (*key, *complaint) {
	for _, path := range slices.Sorted(maps.Keys(l.schema.sections)) {
		s := l.schema.sections[path]
		entry, ok := strings.CutPrefix(name, Variable(path)+"_")
		if !ok || s.entries == nil {
			continue
		}
		if s.entries.section != nil {
			return nil, complain("set it in the configuration file", "variables do not reach into %s", path)
		}
		if s.entries.checkName(strings.ToLower(entry)) == nil {
			return s.entryKey(strings.ToLower(entry)), nil
		}
	}
	return nil, nil
}
