package config

import (
	"maps"
	"slices"
)

// Overridden names a key for which a variable says something else than changes of the file, so
// that these have no effect, and that variable. Both are empty if there is none. Configuration
// and report are those of the changed file.
func (r Report) Overridden(c Config, changes Changes) (key, by string) {
	schema, usual := keys(), Default()
	for _, path := range slices.Concat(slices.Sorted(maps.Keys(changes.Set)), changes.Remove) {
		k := schema.byPath[path]
		variable := r.origins[path].Variable()
		if k == nil || variable == "" {
			continue
		}
		wanted := k.load(&usual) // of what is taken out
		if text, given := changes.Set[path]; given {
			parsed, wrong := k.parse(text)
			if wrong != nil {
				continue // that is a problem of its own
			}
			wanted = parsed
		}
		if shown(wanted) != shown(k.load(&c)) {
			return path, variable
		}
	}
	return "", ""
}
