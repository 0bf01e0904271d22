package rank

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// search finds the terms of an input in descriptions.
type search struct {
	terms    []inputTerm    // the words, then each pair of words, then the request for a program
	words    int            // number of words
	making   int            // the term of the request; -1: none
	at       map[string]int // stems to words
	begins   [256]bool      // letters that a word or a part of one begins with
	last     []int          // of each word: its last position in the description
	position int

	descriptions float64
	holders      []float64 // of each term: the number of descriptions that have it
	mean         float64   // words of a description
}

// occurrences are the numbers of a search's terms in one description; counts is nil if it has none.
type occurrences struct {
	counts []float64
	words  float64
}

func newSearch(terms []inputTerm, making inputTerm) *search {
	s := &search{
		terms: slices.Clone(terms), words: len(terms), making: -1, at: make(map[string]int, len(terms)),
		last: make([]int, len(terms)),
	}
	for i, t := range terms {
		s.at[t.stem] = i
		s.begins[t.stem[0]] = true
		if t.long() {
			for j := range len(t.stem) - partBytesMin + 1 {
				s.begins[t.stem[j]] = true
			}
		}
		if i > 0 {
			pair := inputTerm{word: terms[i-1].word + " " + t.word, weight: 1, file: t.file && terms[i-1].file}
			switch {
			case !t.spaced():
				pair.weight = 0 // a pair of letters is half a word
			case t.weight == weakWeight && terms[i-1].weight == weakWeight:
				pair.weight = weakWeight
			}
			s.terms = append(s.terms, pair)
		}
	}
	if making.word != "" {
		s.making = len(s.terms)
		s.terms = append(s.terms, making)
	}
	return s
}

// inAll counts the terms in each description that has a name.
func (s *search) inAll(descriptions []Description) []occurrences {
	found := make([]occurrences, len(descriptions))
	s.descriptions, s.holders = float64(len(descriptions)), make([]float64, len(s.terms))
	for i, d := range descriptions {
		if d.Name == "" {
			continue // it cannot be selected
		}
		found[i] = s.in(d)
		s.mean += found[i].words / s.descriptions
		for term, n := range found[i].counts {
			if n > 0 {
				s.holders[term]++
			}
		}
	}
	return found
}

// candidate scores one description. words is the number of its words that say what it is about; own reports whether at most
// two descriptions have one of them.
func (s *search) candidate(name string, o occurrences, filesOnly bool) (c Candidate, words int, own bool) {
	c.Name = name
	for term, n := range o.counts {
		t := s.terms[term]
		if n == 0 || t.weight == 0 || filesOnly && !t.file {
			continue
		}
		rare := math.Log(1 + (s.descriptions+background-s.holders[term]+0.5)/(s.holders[term]+0.5))
		often := n * (saturation + 1) / (n + saturation*(1-lengthShare+lengthShare*o.words/s.mean))
		score := rare * often * t.weight
		c.Terms = append(c.Terms, Term{Word: t.word, Score: score, Kind: t.kind()})
		c.Score += score
		switch t.kind() {
		case AnySubject:
		case Program: // a verb and a noun
			words += 2
		default:
			words++
			own = own || s.holders[term] <= 2
		}
	}
	return c, words, own
}

// in counts the terms in one description.
func (s *search) in(d Description) occurrences {
	var o occurrences
	s.count(&o, d.Name, nameWeight)
	s.count(&o, d.Text, 1)
	eachExample(d.Text, func(example string) { s.count(&o, example, 1) })
	return o
}

func (s *search) count(o *occurrences, text string, weight float64) {
	add := func(term int) {
		if o.counts == nil {
			o.counts = make([]float64, len(s.terms))
		}
		o.counts[term] += weight
	}
	s.position += pairDistance + 1
	before := ""
	eachWord(text, func(word string) {
		o.words++
		s.position++
		if s.making >= 0 {
			lower := strings.ToLower(word)
			if words.maker[lower] || words.makerFirst[before] && words.maker[before+" "+lower] {
				add(s.making)
			}
			before = lower
		}
		term := s.find(word)
		if term < 0 {
			return
		}
		add(term)
		if term > 0 && s.last[term-1] >= s.position-pairDistance && s.last[term-1] > 0 {
			add(s.words + term - 1)
		}
		s.last[term] = s.position
	})
	if s.making >= 0 {
		for _, name := range words.makerNames {
			for range strings.Count(text, name) {
				add(s.making)
			}
		}
	}
}

// find returns the term that a word of a description is a form of; -1: none.
func (s *search) find(word string) int {
	if len(word) >= longBytesMin {
		if term := slices.IndexFunc(s.terms[:s.words], func(t inputTerm) bool { return t.ends(word) }); term >= 0 {
			return term
		}
	}
	// gezahlt is a form of zahlen
	if word[0] < utf8.RuneSelf && !s.begins[word[0]|0x20] && !s.begins[word[0]] && !strings.HasPrefix(word, "ge") {
		return -1
	}
	part := stem(word)
	if term, ok := s.at[part]; ok {
		return term
	}
	return slices.IndexFunc(s.terms[:s.words], func(t inputTerm) bool { return t.holds(part) })
}
