package rank

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// inputTerm is one word of an input, or two that follow one another.
type inputTerm struct {
	word   string // as spelled
	stem   string
	weight float64 // 0: counts only in a pair
	file   bool    // it comes from the name of a file
	making bool    // it is the request for a program
}

// kind is what a term shows of itself.
func (t inputTerm) kind() Kind {
	switch {
	case t.making:
		return Program
	case t.weight == weakWeight:
		return AnySubject
	case t.file:
		return File
	case t.stem == "":
		return Pair
	}
	return ""
}

// spaced reports whether a word is written between spaces, and not a pair of letters of a longer text.
func (t inputTerm) spaced() bool {
	first, _ := utf8.DecodeRuneInString(t.word)
	return !isUnspaced(first)
}

// termsOf returns the meaningful words of an input, each once, in order.
func termsOf(input string) []inputTerm {
	var terms []inputTerm
	files := filesOf(input)
	inFile, seen := map[string]bool{}, map[string]bool{}
	for _, f := range files {
		eachWord(f.path, func(word string) { inFile[stem(word)] = true })
	}
	add := func(word, s string, file bool) {
		if len(terms) == rankTermsMax || seen[s] {
			return
		}
		seen[s] = true
		t := inputTerm{word: word, stem: s, weight: 1, file: file}
		switch {
		case s == agentStem:
			t.weight = 0
		case words.weak[s], isNumber(s):
			t.weight = weakWeight
		}
		terms = append(terms, t)
	}
	eachWord(input, func(word string) {
		if _, stop := words.stop[strings.ToLower(word)]; !stop && !isHiragana(word) || stem(word) == agentStem {
			add(word, stem(word), inFile[stem(word)])
		}
	})
	for _, f := range files {
		for _, word := range words.file[f.ending] {
			if word != programFile {
				add(f.path, stem(word), true)
			}
		}
	}
	return terms
}

// namedFile is a file that an input names, with one of the known endings.
type namedFile struct{ path, ending string }

// program reports whether the file is one.
func (f namedFile) program() bool { return slices.Contains(words.file[f.ending], programFile) }

func filesOf(input string) []namedFile {
	var files []namedFile
	for _, path := range strings.FieldsFunc(input, func(c rune) bool {
		return isUnspaced(c) || !unicode.In(c, unicode.L, unicode.N, unicode.M) && !strings.ContainsRune("._-/\\~", c)
	}) {
		path = strings.TrimRight(path, "._-/\\")
		dot := strings.LastIndexByte(path, '.')
		ending := strings.ToLower(path[dot+1:])
		if _, known := words.file[ending]; known && dot >= 0 && len(files) < filesMax {
			files = append(files, namedFile{path, ending})
		}
	}
	return files
}

// makingOf returns a term for a program that an input asks to make. Its word is empty if it asks for none.
func makingOf(input string, terms []inputTerm) inputTerm {
	verb, what, file, weight := "", "", false, float64(makingWeight)
	eachWord(input, func(word string) {
		if verb == "" && words.make[stem(word)] {
			verb = word
		}
	})
	for _, word := range words.makeUnspaced {
		if verb == "" && strings.Contains(input, word) {
			verb = word
		}
	}
	for _, t := range terms {
		if what == "" && words.program[t.stem] {
			what, file = t.word, t.file
		}
	}
	for _, f := range filesOf(input) {
		if f.program() {
			what, file = f.path, true
		}
	}
	for _, t := range terms {
		if what == "" && words.code[t.stem] {
			what, weight = t.word, codeWeight
		}
	}
	if verb == "" || what == "" {
		return inputTerm{}
	}
	return inputTerm{word: verb + programJoint + what, weight: weight, file: file, making: true}
}

// eachWord passes a text's words: letters and digits with their diacritics, and the signs of C++ and C#. In
// scripts without spaces, each pair of letters is a word.
func eachWord(text string, see func(word string)) {
	text = cut(text, rankBytesMax)
	start := -1
	flush := func(end int) {
		if start >= 0 {
			see(text[start:end])
			eachPart(text[start:end], see)
		}
		start = -1
	}
	pairFrom, pairs := -1, 0 // in a run without spaces: the previous letter's position, and the number of pairs
	endRun := func(end int) {
		if pairFrom >= 0 && pairs == 0 {
			see(text[pairFrom:end])
		}
		pairFrom, pairs = -1, 0
	}
	for i := 0; i < len(text); {
		c, size := rune(text[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRuneInString(text[i:])
		}
		if c == '\\' && i+1 < len(text) && strings.IndexByte("nrt", text[i+1]) >= 0 { // a line end as YAML and JSON write it
			size = 2
		}
		switch {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9':
			endRun(i)
			if start < 0 {
				start = i
			}
		case c < utf8.RuneSelf && (c != '+' && c != '#' || start < 0):
			flush(i)
			endRun(i)
		case c < utf8.RuneSelf: // C++, C#
		case isUnspaced(c):
			flush(i)
			if pairFrom >= 0 {
				see(text[pairFrom : i+size])
				pairs++
			}
			pairFrom = i
		case unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c) && (start >= 0 || pairFrom >= 0):
			if !unicode.IsMark(c) {
				endRun(i)
			}
			if start < 0 && pairFrom < 0 {
				start = i
			}
		default:
			flush(i)
			endRun(i)
		}
		i += size
	}
	flush(len(text))
	endRun(len(text))
}

const (
	partBytesMin     = 5         // of a part of a compound word
	endBytesMin      = 6         // of the last part of a compound word in a description
	longBytesMin     = 9         // of a word that is searched for parts
	examplesMax      = 50        // of one description
	filesMax         = 50        // of one input
	languageBytesMax = 200       // of a description: what shows its language
	unspacedShare    = 8         // a Chinese text has more letters than this for each function word of another language
	programFile      = "program" // in wordLists: such a file is a program
)

// long reports whether the word may be a compound. JavaScript is none.
func (t inputTerm) long() bool {
	return len(t.stem) >= longBytesMin && t.stem[0] < utf8.RuneSelf && !words.program[t.stem]
}

// holds reports whether a compound word begins or ends with a part.
func (t inputTerm) holds(part string) bool {
	return len(part) >= partBytesMin && t.long() && (strings.HasPrefix(t.stem, part) || strings.HasSuffix(t.stem, part))
}

// ends reports whether a compound word of a description ends with the term.
func (t inputTerm) ends(word string) bool {
	if len(t.stem) < endBytesMin || t.weight < 1 || t.stem[0] >= utf8.RuneSelf {
		return false
	}
	return strings.Contains(word, t.stem) && strings.HasSuffix(stem(word), t.stem)
}

// eachPart passes the parts of a name like testPayment or PaymentTest; JavaScript is one word.
func eachPart(word string, see func(part string)) {
	start := 0
	for i := 1; i < len(word); i++ {
		if 'A' <= word[i] && word[i] <= 'Z' && 'a' <= word[i-1] && word[i-1] <= 'z' {
			if start == 0 && (words.program[stem(word)] || isSame(strings.ToLower(word))) {
				return
			}
			see(word[start:i])
			start = i
		}
	}
	if start > 0 {
		see(word[start:])
	}
}

// cut returns the beginning of a text.
func cut(text string, bytes int) string {
	if len(text) > bytes {
		return strings.ToValidUTF8(text[:bytes], "")
	}
	return text
}

func isNumber(s string) bool { return strings.Trim(s, "0123456789") == "" }

// isHiragana reports whether a pair holds only the letters of Japanese grammar.
func isHiragana(word string) bool {
	for _, c := range word {
		if !unicode.Is(unicode.Hiragana, c) {
			return false
		}
	}
	return true
}

// eachExample passes the phrases of users that a description quotes.
func eachExample(text string, see func(example string)) {
	text = cut(text, rankBytesMax)
	for _, mark := range [][2]string{{"user: \"", "\""}, {"“", "”"}, {"「", "」"}} {
		rest := text
		for range examplesMax {
			_, after, ok := strings.Cut(rest, mark[0])
			if !ok {
				break
			}
			example, next, ok := strings.Cut(after, mark[1])
			if !ok {
				break
			}
			see(example)
			rest = next
		}
	}
}

// agentStem is the word that each description of an agent has. It counts only beside another word: a new agent.
const agentStem = "agen" // of agent

// folded spells umlauts and accents without their marks: ä and ae give a, ß gives ss.
var folded = strings.NewReplacer("ä", "a", "ö", "o", "ü", "u", "ß", "ss", "que", "que", "ae", "a", "oe", "o", "ue", "u",
	"\u0308", "", "\u0301", "", "\u0300", "",
	"é", "e", "è", "e", "ê", "e", "ë", "e", "à", "a", "â", "a", "ç", "c", "î", "i", "ï", "i", "ô", "o", "û", "u", "ù", "u", "œ", "o")

// endings are those of English and German words, what a word keeps of each, and how long the rest must be.
var endings = []struct {
	end, keep string
	rest      int
}{
	{"ation", "", 5},
	{"at", "", 5},
	{"ion", "", 5},
	{"ysis", "ys", 5},
	{"ungen", "", 4},
	{"innen", "", 4},
	{"ung", "", 4},
	{"tet", "t", 4},
	{"det", "d", 4},
	{"chnet", "chn", 4},
	{"ffnet", "ffn", 4},
	{"ern", "", 4},
	{"en", "", 4},
	{"er", "", 4},
	{"or", "", 5},
	{"es", "", 4},
	{"em", "", 4},
	{"in", "", 4},
	{"e", "", 4},
	{"n", "", 5},
}

// hasMarks reports whether folded may change a word.
func hasMarks(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf || s[i] == 'e' && i > 0 && (s[i-1] == 'a' || s[i-1] == 'o' || s[i-1] == 'u') {
			return true
		}
	}
	return false
}

// stem removes English and German inflection: deprecate and deprecation, Mahnung and mahnen give the same.
func stem(word string) string {
	s := strings.ToLower(word)
	if hasMarks(s) {
		s = folded.Replace(s)
	}
	s = inflected(s)
	for i := range len(s) {
		if s[i] < 'a' || s[i] > 'z' {
			return s
		}
	}
	if len(s) >= 7 && strings.HasPrefix(s, "ge") && (isVerbEnd(s) || strings.HasSuffix(s, "en")) { // gezahlt
		s = s[2:]
	}
	for range 2 {
		if isVerbEnd(s) && len(s) > 4 { // zahlt
			s = s[:len(s)-1]
			continue
		}
		for _, e := range endings {
			if rest, ok := strings.CutSuffix(s, e.end); ok && len(rest)+len(e.keep) >= e.rest {
				s = rest + e.keep
				break
			}
		}
	}
	if rest, ok := strings.CutSuffix(s, "z"); ok { // optimize, optimise
		s = rest + "s"
	}
	return s
}

// isVerbEnd reports whether a word ends with a consonant and t, as German verbs do.
func isVerbEnd(s string) bool {
	n := len(s)
	return n > 2 && s[n-1] == 't' && strings.IndexByte("aeiouyt", s[n-2]) < 0
}

// inflected removes English inflection, lightly: write, writes and writing must give the same stem, and different
// things must not.
func inflected(word string) string {
	s := strings.ToLower(word)
	for i := range len(s) {
		if s[i] < 'a' || s[i] > 'z' {
			return s
		}
	}
	if first, ok := sameWords[s]; ok {
		s = first
	}
	switch {
	case strings.HasSuffix(s, "ies") && len(s) > 4:
		return s[:len(s)-3] + "y"
	case strings.HasSuffix(s, "s") && len(s) > 3 && !strings.HasSuffix(s, "ss") && !strings.HasSuffix(s, "us") &&
		!strings.HasSuffix(s, "sis"):
		s = s[:len(s)-1]
	}
	switch {
	case strings.HasSuffix(s, "ing") && isStem(s[:len(s)-3]):
		return single(s[:len(s)-3])
	case strings.HasSuffix(s, "ed") && !strings.HasSuffix(s, "eed") && isStem(s[:len(s)-2]):
		return single(s[:len(s)-2])
	case strings.HasSuffix(s, "e") && isStem(s[:len(s)-1]):
		return s[:len(s)-1]
	}
	return s
}

// isStem reports whether the rest is still a word.
func isStem(s string) bool { return len(s) >= 3 && strings.ContainsAny(s, "aeiouy") }

// single undoes the doubling before -ing and -ed: debugg, plann.
func single(s string) string {
	if n := len(s); n > 3 && s[n-1] == s[n-2] && strings.IndexByte("lsz", s[n-1]) < 0 {
		return s[:n-1]
	}
	return s
}
