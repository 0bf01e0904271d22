package cli

import (
	"iter"
	"maps"
)

// MapKeys yields the keys of a map.
func MapKeys(m map[string]string) iter.Seq[string] { return maps.Keys(m) }
