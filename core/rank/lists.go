package rank

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// languages are the lists of function words, with their names for people.
var languages = map[string]string{"en": "English", "de": "German", "fr": "French", "es": "Spanish", "zh": "Chinese", "ja": "Japanese"}

// lists is what wordLists says.
type lists struct {
	stop         map[string]string // each word's language; empty: no particular one
	weak         map[string]bool   // stems, as of make and program
	make         map[string]bool
	makeUnspaced []string
	program      map[string]bool
	code         map[string]bool
	maker        map[string]bool // in lower case, one word or two
	makerFirst   map[string]bool // the first of two
	makerNames   []string        // those that are written without spaces
	file         map[string][]string
}

var words = &lists{
	stop:         readStopWords(),
	weak:         readSet("weak", strings.Fields, stem),
	make:         readSet("make", strings.Fields, stem),
	makeUnspaced: unspaced(strings.Fields(section("make"))),
	program:      readSet("program", strings.Fields, stem),
	code:         readSet("code", strings.Fields, stem),
	maker:        readSet("maker", lines, strings.ToLower),
	makerFirst:   readSet("maker", lines, firstWord),
	makerNames:   unspaced(lines(section("maker"))),
	file:         readFiles(),
}

// sameWords are the words that stand for others, by those; stem needs them alone.
var sameWords = readSame()

// section returns the lines below a heading of wordLists.
func section(name string) string {
	_, text, ok := strings.Cut(wordLists, "\n["+name+"]\n")
	if !ok {
		panic("rank: wordLists has no section " + name)
	}
	for _, end := range []string{"\n[", "\n#"} {
		text, _, _ = strings.Cut(text, end)
	}
	return text
}

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }

func firstWord(line string) string {
	first, _, _ := strings.Cut(line, " ")
	return first
}

func readSet(name string, split func(string) []string, key func(string) string) map[string]bool {
	set := map[string]bool{}
	for _, word := range split(section(name)) {
		set[key(word)] = true
	}
	return set
}

// unspaced returns the words that are written without spaces around them.
func unspaced(words []string) []string {
	return slices.DeleteFunc(words, func(word string) bool {
		c, _ := utf8.DecodeRuneInString(word)
		return !isUnspaced(c)
	})
}

func readStopWords() map[string]string {
	stop := map[string]string{}
	for _, language := range []string{"any", "en", "de", "fr", "es"} {
		for _, word := range strings.Fields(section(language)) {
			if _, ok := stop[word]; ok || language == "any" {
				stop[word] = ""
			} else {
				stop[word] = language
			}
		}
	}
	return stop
}

func readSame() map[string]string {
	same := map[string]string{}
	for _, line := range lines(section("same")) {
		all := strings.Fields(line)
		for _, word := range all[1:] {
			same[word] = all[0]
		}
	}
	return same
}

func readFiles() map[string][]string {
	files := map[string][]string{}
	for _, line := range lines(section("file")) {
		all := strings.Fields(line)
		files[all[0]] = all[1:]
	}
	return files
}

// isSame reports whether a word stands for others.
func isSame(word string) bool {
	for _, first := range sameWords {
		if first == word {
			return true
		}
	}
	return false
}

// isUnspaced reports whether a letter belongs to a script that writes words without spaces.
func isUnspaced(c rune) bool {
	return c >= 0x0e00 && (c == 'ー' || unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai))
}

// languageOf returns the language of most function words of a text; empty: it cannot be told. Han letters without
// kana are Chinese.
func languageOf(text string) string {
	found := map[string]int{}
	letters, kana := 0, false
	eachWord(text, func(word string) {
		if language := words.stop[strings.ToLower(word)]; language != "" {
			found[language]++
		}
	})
	for _, c := range text {
		if c >= 0x3000 && unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana) {
			letters++
			kana = kana || !unicode.Is(unicode.Han, c)
		}
	}
	best, most, second := "", 0, 0
	for language, n := range found {
		if n > most {
			best, most, second = language, n, most
		} else {
			second = max(second, n)
		}
	}
	switch {
	case letters > unspacedShare*most && kana:
		return "ja"
	case letters > unspacedShare*most:
		return "zh"
	case most == second:
		return ""
	}
	return best
}

// speaks reports whether a description, or a phrase of a user in it, is in a language. Without function words
// it may be in any.
func speaks(d Description, language string) bool {
	same := func(text string) bool {
		l := languageOf(cut(text, languageBytesMax))
		return l == "" || l == language || l == "ja" && language == "zh" // short Japanese texts may have no kana
	}
	spoken := same(d.Text)
	if !spoken {
		eachExample(d.Text, func(example string) { spoken = spoken || same(example) && languageOf(example) != "" })
	}
	return spoken
}

// isNamed reports whether an input holds a whole name.
func isNamed(input, name string) bool {
	name = strings.ToLower(name)
	rest := strings.ToLower(input)
	if _, stop := words.stop[name]; stop || words.weak[stem(name)] {
		return false
	}
	for {
		before, after, ok := strings.Cut(rest, name)
		if !ok {
			return false
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(after)
		if !joins(last) && !joins(next) {
			return true
		}
		rest = after
	}
}

// joins reports whether a name that is next to this letter is a part of a longer word.
func joins(c rune) bool {
	return c != utf8.RuneError && c < 0x3000 && (unicode.IsLetter(c) || unicode.IsDigit(c) || c == '_' || c == '-')
}
