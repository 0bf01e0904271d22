package policy

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/fairlead-dev/fairlead/internal/lazy"
)

const (
	namedMax           = 64       // paths in one input; more should be named by their folder
	namedInputBytesMax = 64 << 10 // of an input that are searched
)

// namedWord is a quoted text, or a word.
var namedWord = lazy.Regexp("`[^`\n]+`|\"[^\"\n]+\"|'[^'\n]+'|[^ \t\n\r\"`<>|()\\[\\]{},;]+")

// NamedPaths returns the paths that a user's text names, in order, each once: words that look like a path
// (docs/plan, ./x, ~/x, /tmp/x, notes.md, .env, Makefile), quoted or not, and any single word in backquotes.
// A word that only looks like a path ("and/or") is harmless, because no such file exists. The root, the home
// and the folder above do not count unless something in them is named.
func NamedPaths(input string) []string {
	if len(input) > namedInputBytesMax {
		input = strings.ToValidUTF8(input[:namedInputBytesMax], "")
	}
	var paths []string
	add := func(p string) {
		if p = trimPath(p); p != "" && len(paths) < namedMax && !slices.Contains(paths, p) && faultOf(p) == "" {
			paths = append(paths, p)
		}
	}
	for at := namedWord().FindStringIndex(input); at != nil; at = namedWord().FindStringIndex(input) {
		word := input[at[0]:at[1]]
		rest := input[at[1]:]
		quote := word[0]
		switch quoted := len(word) > 2 && word[len(word)-1] == quote && strings.IndexByte("`\"'", quote) >= 0; {
		case !quoted:
			if p := bareWord(word); isNamedPath(p) {
				add(p)
			}
		default:
			p := strings.TrimPrefix(word[1:len(word)-1], "@")
			if isNamedPath(p) || quote == '`' && isSingleName(p) {
				add(p)
			} else if strings.ContainsAny(p, " \t") {
				rest = input[at[0]+1:] // a sentence may name paths
			}
		}
		input = rest
	}
	return paths
}

// bareWord removes what a sentence adds to a word: a full stop, a quote, the @ of a mention, the :12:3 of a
// position.
func bareWord(word string) string {
	word = strings.Trim(word, "'„“”‘’«»*!?:…")
	word = strings.TrimPrefix(word, "@")
	word = strings.TrimRight(word, ".")
	for range 2 {
		if i := strings.LastIndexByte(word, ':'); i > 0 && isNumber(word[i+1:]) {
			word = word[:i]
		}
	}
	return strings.TrimRight(word, "'„“”‘’«»*!?:…")
}

func trimPath(p string) string {
	if rest := strings.TrimPrefix(p, "./"); rest != "" {
		p = rest
	}
	return p
}

// isNamedPath reports whether a word looks like a path.
func isNamedPath(p string) bool {
	bare := strings.Trim(p, "/")
	switch {
	case strings.Contains(p, "://"), strings.HasPrefix(p, "mailto:"), strings.HasPrefix(p, "//"):
		return false
	case strings.Trim(bare, "./~") == "":
		return false // the root, the home or the folder above: too much to be meant
	case strings.Contains(bare, "@") && !strings.Contains(p, "/"):
		return false // a URL
	}
	if strings.ContainsFunc(p, unicode.IsSpace) && (!isFileName(path.Base(p)) || strings.Contains(p, " -")) {
		return false // a sentence, or a command
	}
	if strings.Contains(p, "/") {
		return strings.ContainsFunc(p, unicode.IsLetter)
	}
	return isFileName(p)
}

// isFileName reports whether a word without a slash is a file name: it has an extension of letters and
// digits, or is a known name without one.
func isFileName(name string) bool {
	switch name {
	case "Makefile", "Dockerfile", "Containerfile", "Jenkinsfile", "Justfile", "Gemfile", "Rakefile", "Procfile", "Vagrantfile", "LICENSE", "README", "CHANGELOG":
		return true
	}
	i := strings.LastIndexByte(name, '.')
	if i < 0 || i == len(name)-1 {
		return false
	}
	const endingBytesMax = 12 // .properties
	ending := name[i+1:]
	switch {
	case len(ending) > endingBytesMax || strings.ContainsFunc(ending, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) }):
		return false
	case isNumber(ending):
		return false // v1.2, 3.14
	case strings.EqualFold(name, "e.g") || strings.EqualFold(name, "i.e") || strings.EqualFold(name, "a.m") || strings.EqualFold(name, "p.m"):
		return false
	}
	return i == 0 || !strings.HasSuffix(name[:i], ".")
}

// isSingleName reports whether a text in backquotes may be a file or a folder without an extension.
func isSingleName(p string) bool {
	return p != "" && !strings.ContainsFunc(p, func(r rune) bool {
		return unicode.IsSpace(r) || r != '_' && r != '-' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) && strings.Trim(p, ".") != ""
}
