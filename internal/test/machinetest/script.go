package machinetest

import (
	"strconv"
	"strings"
	"time"
)

// Noon is the start time of scripts and random tests.
var Noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Play runs a script and returns it with its actual results, for golden.Stories.
//
// Blocks are separated by an empty line. A block has comments (#), lines of input, a line of
// dashes, and results. Play calls line for each input, which reports whether the block has a
// result so far. At the end of a block with a result it calls end. Both write results to out,
// which Play empties at the start of each block.
func Play(script string, out *strings.Builder, line func(string) bool, end func()) string {
	var whole strings.Builder
	for i, block := range strings.Split(strings.TrimSpace(script), "\n\n") {
		if i > 0 {
			whole.WriteByte('\n')
		}
		out.Reset()
		inputs, _, _ := strings.Cut(block, "\n----")
		results := false
		for input := range strings.SplitSeq(inputs, "\n") {
			whole.WriteString(input + "\n")
			if input == "" || strings.HasPrefix(input, "#") {
				continue
			}
			results = line(input) || results
		}
		if results {
			end()
			whole.WriteString("----\n" + out.String())
		}
	}
	return whole.String()
}

// Next returns when an input happens and the words after its time. An input may begin with a
// time of day (15:04:05); otherwise it happens one second after the input before it, at now.
func Next(now time.Time, words []string) (time.Time, []string) {
	if at, err := time.Parse(time.TimeOnly, words[0]); err == nil {
		return Noon.Truncate(24 * time.Hour).Add(at.Sub(at.Truncate(24 * time.Hour))), words[1:]
	}
	return now.Add(time.Second), words
}

// Fields splits a line at spaces. Text in quotes is one word without the quotes, also in key="text".
func Fields(line string) []string {
	var words []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		key := ""
		if i := strings.IndexAny(line, " \""); i > 0 && line[i] == '"' && line[i-1] == '=' {
			key, line = line[:i], line[i:]
		}
		if line[0] == '"' {
			if quoted, err := strconv.QuotedPrefix(line); err == nil {
				word, _ := strconv.Unquote(quoted)
				words = append(words, key+word)
				line = line[len(quoted):]
				continue
			}
		}
		word, after, _ := strings.Cut(line, " ")
		words = append(words, key+word)
		line = after
	}
	return words
}
