package testfiles

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Spliced is a [Shared] file as it is after a change, but with what it says about tests
// as it was before. It reports false for what cannot be read.
func Spliced(name string, before, after []byte) ([]byte, bool) {
	switch path.Base(name) {
	case "package.json", "composer.json", "deno.json", "deno.jsonc":
		return splicedJSON(before, after)
	case "pyproject.toml":
		was, ok := tomlTable(before)
		is, okNow := tomlTable(after)
		if !ok || !okNow {
			return nil, false
		}
		for _, part := range pythonParts {
			is = withPart(is, part, partOf(was, part))
		}
		data, err := toml.Marshal(is)
		return data, err == nil
	default:
		ofTests, _ := sections(before)
		_, others := sections(after)
		return []byte(strings.Join(append(others, ofTests...), "\n") + "\n"), true
	}
}

// splicedJSON leaves everything inside the parts as it is written: the order of names
// has a meaning in some.
func splicedJSON(before, after []byte) ([]byte, bool) {
	var was, is map[string]json.RawMessage
	if json.Unmarshal(before, &was) != nil || json.Unmarshal(after, &is) != nil || is == nil {
		return nil, false
	}
	for _, part := range append([]string{"scripts"}, manifestParts...) {
		delete(is, part)
		if value, has := was[part]; has {
			is[part] = value
		}
	}
	data, err := json.Marshal(is)
	return data, err == nil
}

// withPart is a table with another part. A part that is nil is taken out.
func withPart(table map[string]any, part string, value any) map[string]any {
	first, rest, further := strings.Cut(part, ".")
	if further && (value != nil || object(table[first]) != nil) {
		value = withPart(object(table[first]), rest, value)
	}
	if table == nil {
		table = map[string]any{}
	}
	if value == nil {
		delete(table, first)
	} else {
		table[first] = value
	}
	return table
}
