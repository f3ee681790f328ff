package llm

import (
	"maps"
	"slices"
)

// Kinds are all kinds of errors.
func Kinds() []Kind { return slices.Sorted(maps.Keys(kinds)) }
