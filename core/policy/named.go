package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	namedMax           = 64       // paths in one input; more should be named by their folder
	namedInputBytesMax = 64 << 10 // of an input that are searched
	namedJoinedMax     = 600      // bytes of a word in which names are searched: 200 characters without a blank or a mark
	namedLooksMax      = 1000     // at the disk for one input; such a word takes 200, and those for its names
)

// namedWord is a quoted text, or a word. White space, brackets and the marks of any script end a word.
var namedWord = regexp.MustCompile("`[^`\n]+`|\"[^\"\n]+\"|'[^'\n]+'|“[^“”\n]+”|„[^“”\n]+[“”]|‘[^‘’\n]+’|«[^«»\n]+»|‹[^‹›\n]+›|「[^「」\n]+」|『[^『』\n]+』|" +
	"[^\\s\\pZ\"`<>|()\\[\\]{},;“”„«»‹›，、。；：？！｡､（）［］｛｝＜＞｜＂＇｀\u3008-\u3011\u3014-\u301f\u300c-\u300f]+")

// namedRun is a part of a word in text that is written without blanks, as in Chinese and Japanese.
var namedRun = regexp.MustCompile(`[^\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}ー]+`)

// namedJoined is a character of such text.
var namedJoined = regexp.MustCompile(`[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}ー]`)

// namedQuotes are the quotes that open a quoted text in namedWord.
const namedQuotes = "`\"'“„‘«‹「『"

// NamedPaths returns the paths that a user's text names, in order, each once: words that look like a path
// (docs/plan, ./x, ~/x, /tmp/x, notes.md, .env, Makefile), quoted or not, and any single word in backquotes.
// A word that only looks like a path ("and/or") is harmless, because no such file exists. The root, the home
// and the folder above do not count unless something in them is named.
//
// It also returns those that exist between text that is joined to them on both sides, as in Chinese and Japanese, where only the
// disk tells where a name begins and ends. exists reports whether a path exists; nil: these are not looked for.
func NamedPaths(input string, exists func(path string) bool) []string {
	looks := 0
	there := func(p string) bool {
		looks++
		return looks <= namedLooksMax && exists(p)
	}
	if len(input) > namedInputBytesMax {
		input = strings.ToValidUTF8(input[:namedInputBytesMax], "")
	}
	var paths []string
	add := func(p string) {
		if p = trimPath(p); p != "" && len(paths) < namedMax && !slices.Contains(paths, p) && faultOf(p) == "" {
			paths = append(paths, p)
		}
	}
	search := func(word string) {
		if exists != nil && len(word) <= namedJoinedMax && looks < namedLooksMax {
			for _, found := range joinedPaths(word, there) {
				add(found)
			}
		}
	}
	for at := namedWord.FindStringIndex(input); at != nil; at = namedWord.FindStringIndex(input) {
		word := input[at[0]:at[1]]
		rest := input[at[1]:]
		quote, size := utf8.DecodeRuneInString(word)
		_, ends := utf8.DecodeLastRuneInString(word)
		switch quoted := strings.ContainsRune(namedQuotes, quote) && len(word) > size+ends &&
			!(strings.ContainsRune("`\"'", quote) && word[len(word)-1] != word[0]); {
		case !quoted:
			p := bareWord(word)
			if isNamedPath(p) {
				add(p)
			}
			for _, run := range namedRun.FindAllString(p, -1) {
				if run = bareWord(run); run != p && !strings.HasSuffix(run, "/") && // a folder of a longer name
					(!strings.HasPrefix(run, ".") || strings.HasPrefix(run, "./") || strings.HasPrefix(run, "../")) && isNamedPath(run) {
					add(run)
				}
			}
			search(word)
		default:
			p := strings.TrimPrefix(word[size:len(word)-ends], "@")
			if isNamedPath(p) || quote == '`' && isSingleName(p) {
				add(p)
				search(p)
			} else {
				rest = input[at[0]+size:] // a sentence may name paths
			}
		}
		input = rest
	}
	return paths
}

// joinedPaths returns the paths inside a word of a text that is written without blanks: the longest one that exists, and those before
// and after it. Without a file, it is a new one in a folder that exists.
func joinedPaths(word string, exists func(string) bool) []string {
	if !strings.ContainsAny(word, "./") || !namedJoined.MatchString(word) {
		return nil
	}
	var from, to int
	var inFolder []int // where a name begins whose first folder exists
	for begin := range word {
		first, _, nested := strings.Cut(word[begin:], "/")
		if nested = nested && (first == "" || first == "~" || exists(first)); nested {
			inFolder = append(inFolder, begin)
		}
		for end := len(word); end > begin+to-from; end-- {
			p := word[begin:end]
			ends := endsName(word, end)
			if (ends || nested && (end == len(word) || utf8.RuneStart(word[end]))) && (nested || !strings.Contains(p, "/")) &&
				isNamedPath(p) && exists(p) {
				from, to = begin, end
				break
			}
		}
	}
	for found := to > 0 && word[to-1] != '/'; !found && len(inFolder) > 0; inFolder = inFolder[1:] {
		begin := inFolder[0]
		for end := begin + 1; end <= len(word) && !found; end++ {
			p := word[begin:end]
			if endsName(word, end) && strings.Contains(p, "/") && isNamedPath(p) && isFileName(path.Base(p)) && exists(path.Dir(p)) {
				from, to, found = begin, end, true
			}
		}
	}
	if to == 0 {
		return nil
	}
	return slices.Concat(joinedPaths(word[:from], exists), []string{word[from:to]}, joinedPaths(word[to:], exists))
}

// endsName reports whether an ending of a file name, such as .md, can end at this place of a word.
func endsName(word string, end int) bool {
	is := func(at int) bool {
		return at < len(word) && word[at] < utf8.RuneSelf && (unicode.IsLetter(rune(word[at])) || unicode.IsDigit(rune(word[at])))
	}
	return is(end-1) && !is(end)
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
	case "Makefile", "Dockerfile", "Containerfile", "Jenkinsfile", "Justfile", "Gemfile", "Rakefile", "Procfile", "Vagrantfile", "LICENSE",
		"README", "CHANGELOG":
		return true
	}
	i := strings.LastIndexByte(name, '.')
	if i < 0 || i == len(name)-1 {
		return false
	}
	const endingBytesMax = 12 // .properties
	ending := name[i+1:]
	switch {
	case len(ending) > endingBytesMax ||
		strings.ContainsFunc(ending, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) }):
		return false
	case isNumber(ending):
		return false // v1.2, 3.14
	case strings.EqualFold(name, "e.g") || strings.EqualFold(name, "i.e") || strings.EqualFold(name, "a.m") ||
		strings.EqualFold(name, "p.m"):
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
