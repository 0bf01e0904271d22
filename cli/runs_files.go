package cli

import (
	"iter"
	"maps"
)

func MapKeys(m map[string]string) iter.Seq[string] { return maps.Keys(m) }
