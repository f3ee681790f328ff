package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// variablePrefix begins the name of every environment variable of Toryo.
const variablePrefix = "TORYO_"

// kind says what sort of value a key takes.
type kind int

const (
	textKind kind = iota
	secretKind
	boolKind
	wholeKind
	numberKind
	durationKind
	sizeKind
	listKind
	commandKind // a list whose words may be anything
)

// key is one setting: its place in [Config] and the rules of its tags.
type key struct {
	path     string // "github.owner"
	name     string // "owner"
	kind     kind
	maybe    bool   // the field is a pointer: there may be no value
	field    []int  // index in Config
	entry    string // the entry, when the field is a map
	fallback string // default, as written in a variable
	enum     []string
	min, max *float64
	format   string
	about    string
	example  string
	usual    bool
}

// variable is the name of the environment variable for the key.
func (k *key) variable() string { return Variable(k.path) }

// Variable is the name of the environment variable for a key such as "github.owner".
func Variable(path string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// section is a group of keys and sections, in the order of the struct.
type section struct {
	path    string // "" for the whole file
	name    string
	about   string
	members []member
	open    *key // the rules for names that are not listed, or nil
}

// member is a key or a section.
type member struct {
	key     *key
	section *section
}

func (m member) name() string {
	if m.key != nil {
		return m.key.name
	}
	return m.section.name
}

func (s *section) find(name string) (member, bool) {
	for _, m := range s.members {
		if m.name() == name {
			return m, true
		}
	}
	return member{}, false
}

// entryKey is the key for a name of the user's own in an open section.
func (s *section) entryKey(name string) *key {
	k := *s.open
	k.name, k.entry, k.path = name, name, s.path+"."+name
	return &k
}

// schema is everything there is to know about the keys.
type schema struct {
	root     *section
	keys     []*key // in the order of the struct
	byPath   map[string]*key
	sections map[string]*section
}

// keys returns the schema of [Config], made once.
var keys = sync.OnceValue(func() *schema {
	s := &schema{
		root:     &section{},
		byPath:   make(map[string]*key),
		sections: make(map[string]*section),
	}
	s.addFields(s.root, reflect.TypeFor[Config](), nil)
	return s
})

// addFields adds what the fields of a struct describe to a section.
func (s *schema) addFields(to *section, of reflect.Type, at []int) {
	s.sections[to.path] = to
	for i := range of.NumField() {
		field := of.Field(i)
		index := append(slices.Clone(at), i)
		switch {
		case field.Anonymous:
			s.addFields(to, field.Type, index)
		case field.Type.Kind() == reflect.Struct:
			inner := newSection(to, field)
			to.members = append(to.members, member{section: inner})
			s.addFields(inner, field.Type, index)
		case field.Type.Kind() == reflect.Map:
			inner := newSection(to, field)
			to.members = append(to.members, member{section: inner})
			s.addEntries(inner, field, index)
		default:
			s.addKey(to, newKey(to, field, index))
		}
	}
}

func newSection(in *section, field reflect.StructField) *section {
	name := field.Tag.Get("key")
	return &section{path: join(in.path, name), name: name, about: field.Tag.Get("about")}
}

// addEntries adds the entries that a map has by default, and lets it have more.
func (s *schema) addEntries(to *section, field reflect.StructField, index []int) {
	s.sections[to.path] = to
	to.open = &key{kind: textKind, field: index, format: field.Tag.Get("format")}
	for pair := range strings.FieldsSeq(field.Tag.Get("default")) {
		name, value, _ := strings.Cut(pair, "=")
		k := to.entryKey(name)
		k.fallback = value
		s.addKey(to, k)
	}
}

func (s *schema) addKey(to *section, k *key) {
	to.members = append(to.members, member{key: k})
	s.keys = append(s.keys, k)
	s.byPath[k.path] = k
}

func newKey(in *section, field reflect.StructField, index []int) *key {
	tag := field.Tag
	name := tag.Get("key")
	k := &key{
		path:     join(in.path, name),
		name:     name,
		kind:     kindOf(field.Type),
		maybe:    field.Type.Kind() == reflect.Pointer,
		field:    index,
		fallback: tag.Get("default"),
		enum:     strings.Fields(tag.Get("enum")),
		format:   tag.Get("format"),
		about:    tag.Get("about"),
		example:  tag.Get("example"),
		usual:    tag.Get("usual") == "true",
	}
	k.min, k.max = k.limit(tag.Get("min")), k.limit(tag.Get("max"))
	if k.format == "label" && k.fallback == "" {
		k.fallback = task.DefaultLabelNames()[task.Label(name)]
	}
	return k
}

func kindOf(of reflect.Type) kind {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch of {
	case reflect.TypeFor[redact.Secret]():
		return secretKind
	case reflect.TypeFor[string]():
		return textKind
	case reflect.TypeFor[bool]():
		return boolKind
	case reflect.TypeFor[int]():
		return wholeKind
	case reflect.TypeFor[float64]():
		return numberKind
	case reflect.TypeFor[time.Duration]():
		return durationKind
	case reflect.TypeFor[ByteSize]():
		return sizeKind
	case reflect.TypeFor[[]string]():
		return listKind
	case reflect.TypeFor[Command]():
		return commandKind
	}
	panic(fmt.Sprintf("config: a field of type %v cannot be configured", of))
}

// limit reads a limit, which is written like a value of the key.
func (k *key) limit(tag string) *float64 {
	if tag == "" {
		return nil
	}
	unbounded := &key{kind: k.kind}
	if k.kind == wholeKind {
		unbounded.kind = numberKind
	}
	value, wrong := unbounded.parse(tag)
	if wrong != nil {
		panic(fmt.Sprintf("config: bad limit of %s: %s", k.path, wrong.message))
	}
	number := reflect.ValueOf(value).Convert(reflect.TypeFor[float64]()).Float()
	return &number
}

func join(section, name string) string {
	if section == "" {
		return name
	}
	return section + "." + name
}

// defaults gives every key its default.
func (s *schema) defaults() Config {
	var c Config
	for _, k := range s.keys {
		value, wrong := k.parse(k.fallback)
		if wrong != nil {
			panic(fmt.Sprintf("config: bad default of %s: %s", k.path, wrong.message))
		}
		k.store(&c, value)
	}
	return c
}

// store puts a value, as [key.parse] makes it, into its field.
func (k *key) store(c *Config, value any) {
	field := reflect.ValueOf(c).Elem().FieldByIndex(k.field)
	if k.entry == "" {
		put(field, value)
		return
	}
	if field.IsNil() {
		field.Set(reflect.MakeMap(field.Type()))
	}
	field.SetMapIndex(reflect.ValueOf(k.entry), reflect.ValueOf(value))
}

// put sets a field, and makes the pointer for a value that may be missing.
func put(field reflect.Value, value any) {
	switch {
	case value == nil:
		field.SetZero()
	case field.Kind() == reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
		put(field.Elem(), value)
	default:
		field.Set(reflect.ValueOf(value).Convert(field.Type()))
	}
}

// load returns the value of the field.
func (k *key) load(c *Config) any {
	field := reflect.ValueOf(c).Elem().FieldByIndex(k.field)
	if k.entry == "" {
		return field.Interface()
	}
	entry := field.MapIndex(reflect.ValueOf(k.entry))
	if !entry.IsValid() {
		return ""
	}
	return entry.Interface()
}

// fileKey is the key that names a file for a secret.
func (s *schema) fileKey(secret *key) *key { return s.byPath[secret.path+"_file"] }

// inForce lists the keys of a configuration: those of the schema, and after its
// section's keys every entry of the user's own.
func (s *schema) inForce(c *Config) []*key {
	var all []*key
	var visit func(*section)
	visit = func(at *section) {
		listed := make(map[string]bool)
		for _, m := range at.members {
			if m.section != nil {
				visit(m.section)
				continue
			}
			all = append(all, m.key)
			listed[m.key.name] = true
		}
		if at.open == nil {
			return
		}
		entries, _ := reflect.TypeAssert[map[string]string](reflect.ValueOf(c).Elem().FieldByIndex(at.open.field))
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			if !listed[name] {
				all = append(all, at.entryKey(name))
			}
		}
	}
	visit(s.root)
	return all
}
