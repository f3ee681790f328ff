// Package config reads what Toryo is told about its work: one YAML file,
// environment variables over it, flags over both.
//
// The struct [Config] is the one source of truth. Its tags name every key, its
// default, its limits and what it is for; reading, checking, the names of the
// environment variables, the listing of what is in force and the file that
// "toryo config init" writes are all derived from them:
//
//	key      name in the file
//	default  value when nobody sets it
//	enum     allowed values, separated by spaces
//	min, max limits of a number, a duration or a size
//	format   a rule for the text, see formats.go
//	lines    "true" for secrets that may have several lines
//	about    one line for people
//	example  a value to show in the template when the default is empty
//	usual    "true" for keys that stand uncommented in the template
//
// The type of a field says what its key takes: text, [redact.Secret], bool, int,
// float64, [time.Duration], [ByteSize], a list of texts or a [Command]. A pointer
// may have no value. A struct is a section; an embedded one adds its keys, and
// with the tag
//
//	as       section that describes these keys, so that the template need not
//
// A map is a section whose entries have names of the user's own. Its entries are
// texts, or sections of their own; environment variables do not reach into the
// latter, since nothing in the name of a variable would say where the name of the
// entry ends. A map also has the tags
//
//	names    a rule for the names of entries, see nameRules in entries.go
//	example  name of the entry that the template shows
//
// and a field of an entry with the tag "order" is set to its place in the file.
//
// [Load] never stops at the first problem: it reports every one, with its line,
// in one run. Secrets come from the environment or from files of their own and
// are never printed.
package config
