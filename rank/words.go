package rank

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// term is one word of an input.
type term struct {
	word   string // as spelled
	stem   string
	weight float64
}

// termsOf returns the meaningful words of an input, each once, in order.
func termsOf(input string) []term {
	var terms []term
	seen := map[string]bool{}
	eachWord(input, func(word string) {
		s := stem(word)
		if len(terms) == rankTermsMax || seen[s] || isStopWord(strings.ToLower(word)) {
			return
		}
		seen[s] = true
		weight := 1.0
		if isWeakWord(s) {
			weight = weakWeight
		}
		terms = append(terms, term{word: word, stem: s, weight: weight})
	})
	return terms
}

// eachWord passes a text's words: letters and digits with their diacritics, and the signs of C++ and C#. In
// scripts without spaces, each pair of letters is a word.
func eachWord(text string, see func(word string)) {
	if len(text) > rankBytesMax {
		text = strings.ToValidUTF8(text[:rankBytesMax], "")
	}
	start := -1
	flush := func(end int) {
		if start >= 0 {
			see(text[start:end])
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
		case unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
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

// stem removes English inflection, lightly: write, writes and writing must give the same stem, and different
// things must not.
func stem(word string) string {
	s := strings.ToLower(word)
	for i := range len(s) {
		if s[i] < 'a' || s[i] > 'z' {
			return s
		}
	}
	switch s {
	case "py":
		return "python"
	case "js":
		return "javascript"
	case "ts":
		return "typescript"
	case "golang":
		return "go"
	case "postgres":
		return "postgresql"
	case "db", "dbs":
		return "databas"
	case "docs", "doc":
		return "documentation"
	case "kubernetes":
		return "k8s"
	}
	switch {
	case strings.HasSuffix(s, "ies") && len(s) > 4:
		return s[:len(s)-3] + "y"
	case strings.HasSuffix(s, "s") && len(s) > 3 && !strings.HasSuffix(s, "ss") && !strings.HasSuffix(s, "us") && !strings.HasSuffix(s, "sis"):
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

// isStopWord lists words that occur in every description and say nothing about the work: English first, then
// the commonest of some other languages.
func isStopWord(word string) bool {
	switch word {
	case "a", "an", "the", "and", "or", "but", "if", "then", "else", "so", "as", "at", "by", "for", "from", "in", "into", "of", "off", "on", "onto",
		"out", "over", "to", "up", "with", "without", "within", "about", "after", "before", "between", "through", "under", "than", "too", "very", "via",
		"is", "are", "was", "were", "be", "been", "being", "am", "do", "does", "did", "done", "doing", "has", "have", "had", "having", "will", "would",
		"can", "could", "shall", "should", "may", "might", "must", "not", "no", "nor", "yes", "ok", "okay", "i", "me", "my", "mine", "you", "your",
		"yours", "he", "him", "his", "she", "her", "it", "its", "we", "us", "our", "they", "them", "their", "this", "that", "these", "those", "there",
		"here", "what", "which", "who", "whom", "whose", "when", "where", "why", "how", "all", "any", "both", "each", "few", "more", "most", "other",
		"some", "such", "only", "own", "same", "just", "also", "now", "let", "lets", "s", "t", "d", "ll", "m", "re", "ve", "don", "e", "g", "eg", "ie",
		"please", "thanks", "thank", "hello", "hi", "hey", "bye", "welcome", "sorry", "great", "good", "nice", "cool", "help", "helps", "need", "needs",
		"want", "wants", "like", "use", "used", "uses", "using", "user", "agent", "agents", "task", "tasks", "work", "whenever", "etc", "one", "get",
		"got", "see", "know", "think", "tell", "say", "said", "ask", "thing", "things", "something", "anything", "way", "much", "many", "again", "still", "include", "includes", "including":
		return true
	case "der", "die", "das", "den", "dem", "des", "ein", "eine", "einen", "einem", "einer", "und", "oder", "aber", "ist", "sind", "war", "bin", "du",
		"ich", "er", "sie", "wir", "ihr", "mir", "mich", "dir", "dich", "uns", "nicht", "kein", "keine", "mit", "von", "zu", "zum", "zur", "für", "auf",
		"aus", "bei", "im", "ins", "bitte", "danke", "hallo", "ja", "nein", "wer", "wie", "wo", "kannst", "kann",
		"le", "la", "les", "un", "une", "et", "ou", "est", "sont", "je", "tu", "il", "elle", "nous", "vous", "ne", "pas", "avec", "pour", "dans", "sur",
		"au", "aux", "merci", "bonjour", "oui", "non", "que", "qui", "el", "los", "las", "uno", "una", "y", "o", "es", "son", "yo", "con", "por",
		"para", "en", "gracias", "hola", "sí":
		return true
	}
	return false
}

// isWeakWord lists stems that are used for any work: alone they select no agent.
func isWeakWord(stem string) bool {
	switch stem {
	case "writ", "mak", "creat", "add", "fix", "chang", "updat", "build", "built", "run", "start", "stop", "go", "do", "show", "giv", "tak", "set", "put",
		"implement", "develop", "generat", "handl", "improv", "check", "look", "find", "new", "old", "small", "big", "simpl", "complex", "file", "folder",
		"project", "cod", "program", "system", "feature", "issu", "problem", "question", "answer", "explain", "expert", "specialist", "engineer", "developer",
		"world", "specializ", "tool", "best", "practic", "provid", "support", "quick", "first", "last", "next", "everyth", "schreib", "mach":
		return true
	}
	return false
}
