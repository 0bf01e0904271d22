package speech

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// Size limits for the parts of an event. Together they are well below the longest line that a reader
// accepts, unless every byte needs six to be encoded: then encode drops parts.
const (
	// TextBytesMax is the longest text in one event.
	TextBytesMax = 64 << 10

	detailBytesMax = 8 << 10   // of a terminal event; shown as a whole in one place
	aloneBytesMax  = 4 << 10   // an error that a program gives as its answer is shorter
	argsBytesMax   = 256 << 10 // new file content is shown up to this size; the file has the rest
	argBytesMax    = 64 << 10  // limit for one argument if all of them together are too long
	argLeast       = 1 << 10   // minimum space for an argument to be included
	argOverhead    = 8         // quotes, colon, comma
	rawBytesMax    = 64 << 10  // a program's own message
	optionsMax     = 64        // must be readable for a person
	optionBytesMax = 1 << 10
	pathsMax       = 256
	pathBytesMax   = 4 << 10 // PATH_MAX of Linux
	cutWords       = " … [cut: %d bytes]"
)

// What Fact.Cut names if some of them are missing completely.
const (
	cutArguments = "args"
	cutPaths     = "paths"
)

// CutText shortens a text to fit into an event.
func CutText(s string) string { return cutTo(s, TextBytesMax) }

func cutTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return clip.To(s, n) + fmt.Sprintf(cutWords, len(s))
}

// CutRaw shortens a program's message to fit into an event: the message itself, or a string with its
// beginning.
func CutRaw(raw []byte) json.RawMessage {
	switch {
	case len(raw) == 0:
		return nil
	case len(raw) <= rawBytesMax && json.Valid(raw):
		return bytes.ToValidUTF8(raw, []byte(string(utf8.RuneError)))
	}
	return encode.JSON(cutTo(strings.ToValidUTF8(string(raw[:min(len(raw), rawBytesMax+1)]), string(utf8.RuneError)), rawBytesMax/2))
}

// cutArgs shortens arguments that are too long, and returns the names of those that are incomplete.
// If some are missing completely, "args" is among the names.
func cutArgs(args json.RawMessage, cut []string) (json.RawMessage, []string) {
	if len(args) == 0 {
		return nil, cut
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(args, &all) != nil || all == nil {
		return nil, append(cut, cutArguments)
	}
	if len(args) <= argsBytesMax {
		return bytes.ToValidUTF8(args, []byte(string(utf8.RuneError))), cut
	}
	// Short ones first: a path, a command and a flag are more informative than file content.
	byLength := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(all[a]), len(all[b])), cmp.Compare(a, b))
	})
	room, left := argsBytesMax, 0
	for _, name := range byLength {
		if room -= len(name) + argOverhead; room < argLeast {
			delete(all, name)
			left++
			continue
		}
		if most := min(room, argBytesMax); len(all[name]) > most {
			all[name], cut = beginning(all[name], most/2), append(cut, cutTo(name, optionBytesMax))
		}
		room -= len(all[name])
	}
	if left > 0 {
		cut = append(cut, cutArguments)
	}
	return encode.JSON(all), cut
}

// beginning returns the beginning of a string. Other values cannot be shortened meaningfully and are
// dropped.
func beginning(value json.RawMessage, most int) json.RawMessage {
	var text string
	if json.Unmarshal(value, &text) != nil {
		text = fmt.Sprintf("[cut: %d bytes]", len(value))
	}
	return encode.JSON(cutTo(text, most))
}

func fewer(options []driver.Option) []driver.Option {
	if len(options) == 0 {
		return nil
	}
	few := slices.Clone(options[:min(len(options), optionsMax)])
	for i := range few {
		// A shortened ID is useless, so IDs are not shortened, and options with overlong IDs are
		// dropped.
		few[i].Kind, few[i].Label = cutTo(few[i].Kind, optionBytesMax), cutTo(few[i].Label, optionBytesMax)
	}
	return slices.DeleteFunc(few, func(o driver.Option) bool { return len(o.ID) > optionBytesMax })
}

// shorter drops excess and overlong paths, and marks the list as incomplete. Otherwise a policy
// could conclude that a call touches no other files.
func shorter(paths, cut []string) (few, cutNow []string) {
	if len(paths) == 0 {
		return nil, cut
	}
	few = slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return len(p) > pathBytesMax })
	few = few[:min(len(few), pathsMax)]
	if len(few) < len(paths) {
		cut = append(cut, cutPaths)
	}
	return few, cut
}

// edge returns the greatest length up to n that does not split a character.
func edge(s string, n int) int {
	if n >= len(s) {
		return len(s)
	}
	for back := 0; back < utf8.UTFMax && back < n; back++ {
		if utf8.RuneStart(s[n-back]) {
			return n - back
		}
	}
	return n
}
