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
//	min, max limits of a number
//	format   a rule for the text, see formats in value.go
//	about    one line for people
//	example  a value to show in the template when the default is empty
//	usual    "true" for keys that stand uncommented in the template
//
// [Load] never stops at the first problem: it reports every one, with its line,
// in one run. Secrets come from the environment or from files of their own and
// are never printed.
package config
