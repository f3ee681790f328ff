package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// VariablePrefix begins the name of every environment variable of Toryo.
const VariablePrefix = "TORYO_"

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
	maybe    bool // the field is a pointer: there may be no value
	in       *section
	field    []int  // index in Config
	entry    string // the entry, when the field is a map
	inner    []int  // index in the entry, when the entry is a section
	fallback string // default, as written in a variable
	enum     []string
	min, max *float64
	format   string
	about    string
	example  string
	usual    bool
	lines    bool // the value may have several lines
}

// variable is the name of the environment variable for the key, or "" where
// variables do not reach.
func (k *key) variable() string {
	if k.in.inEntry {
		return ""
	}
	return Variable(k.path)
}

// Variable is the name of the environment variable for a key such as "github.owner".
func Variable(path string) string {
	return VariablePrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// section is a group of keys and sections, in the order of the struct.
type section struct {
	path    string // "" for the whole file
	name    string
	about   string
	members []member
	entries *entries // the rules for entries of the user's own, or nil
	inEntry bool     // it is a part of an entry
}

// member is a key or a section.
type member struct {
	key     *key
	section *section
	as      string // the section that describes it, when that is another
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

// schema is everything there is to know about the keys.
type schema struct {
	root     *section
	keys     []*key // in the order of the struct, without those of entries
	byPath   map[string]*key
	inEntry  []*key // those that entries have
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
		if field.Tag.Get("key") == "-" {
			continue // no key of the file
		}
		index := append(slices.Clone(at), i)
		switch {
		case field.Tag.Get("key") == "" && !field.Anonymous:
			// Not set by anybody: see addEntry and takeKeys.
		case field.Anonymous:
			before := len(to.members)
			s.addFields(to, field.Type, index)
			for i := range to.members[before:] {
				to.members[before+i].as = field.Tag.Get("as")
			}
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
	return &section{path: join(in.path, name), name: name, about: field.Tag.Get("about"), inEntry: in.inEntry}
}

func (s *schema) addKey(to *section, k *key) {
	to.members = append(to.members, member{key: k})
	if to.inEntry {
		s.inEntry = append(s.inEntry, k)
		return
	}
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
		in:       in,
		field:    index,
		fallback: tag.Get("default"),
		enum:     strings.Fields(tag.Get("enum")),
		format:   tag.Get("format"),
		about:    tag.Get("about"),
		example:  tag.Get("example"),
		usual:    tag.Get("usual") == "true",
		lines:    tag.Get("lines") == "true",
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
		k.storeDefault(&c)
	}
	return c
}

func (k *key) storeDefault(c *Config) {
	value, wrong := k.parse(k.fallback)
	if wrong != nil {
		panic(fmt.Sprintf("config: bad default of %s: %s", k.path, wrong.message))
	}
	k.store(c, value)
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
	name := reflect.ValueOf(k.entry)
	entry := reflect.New(field.Type().Elem()).Elem()
	if before := field.MapIndex(name); before.IsValid() {
		entry.Set(before)
	}
	put(k.part(entry), value)
	field.SetMapIndex(name, entry)
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
	return k.part(entry).Interface()
}

// part is the value of the key in an entry.
func (k *key) part(entry reflect.Value) reflect.Value {
	if k.inner == nil {
		return entry
	}
	return entry.FieldByIndex(k.inner)
}

// fileKey is the key that names a file for a secret.
func (k *key) fileKey() *key {
	named, _ := k.in.find(k.name + "_file")
	return named.key
}
