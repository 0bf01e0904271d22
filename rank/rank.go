// Package rank compares a text with the descriptions of agents, and says which agent fits best (seed 002: an
// agent's description is its transition function).
//
// The one promise: the same text and descriptions give the same result, and the result says which words
// decided.
package rank

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// rankThreshold is slightly more than one distinctive word: a word that only one description holds weighs
	// about two, a verb that fits any work less than one.
	rankThreshold = 1.5

	saturation  = 1.2 // BM25's k1: how soon a repeated word stops counting
	lengthShare = 0.4 // BM25's b: how much a long description costs; agents' descriptions are long
	nameWeight  = 2   // a word of the name counts as if it occurred twice
	weakWeight  = 0.4 // write, make, fix: used for any work

	// background is a number of imaginary descriptions without the word: with one agent, or three, a word of
	// all descriptions would otherwise weigh nothing.
	background = 8

	rankBytesMax      = 16 << 10 // of an input or a description, from its beginning
	rankTermsMax      = 256      // of an input
	rankCandidatesMax = 50       // listed candidates
	reasonTermsMax    = 6        // words that the reason names
	reasonWordMax     = 80       // bytes of each of them
	reasonNoWord      = "no description shares a word with it"
)

// Description is one state that an input may lead to: its name, and the words that say when (seed 002: agent
// descriptions are transition functions).
type Description struct {
	Name string `json:"name"`
	Text string `json:"description"`
}

// Ranking is every description's score for one input, best first, equal scores by name.
type Ranking struct {
	Best      string      `json:"best" doc:"The agent that takes over; empty: no description fits"`
	Reason    string      `json:"reason" doc:"Why this agent, or why none"`
	Threshold float64     `json:"threshold" doc:"The score that an agent needs to take over"`
	Terms     []string    `json:"terms" doc:"The words that were searched for"`
	Scores    []Candidate `json:"scores" doc:"The best first, at most 50; only agents whose description shares a word with the text"`
}

// Candidate is one description's position in a Ranking. Only those with a common term are listed.
type Candidate struct {
	Name  string  `json:"name"`
	Score float64 `json:"score" doc:"The sum of its terms"`
	Terms []Term  `json:"terms" doc:"The heaviest first"`
}

// Term is one word that an input and a description share.
type Term struct {
	Word  string  `json:"word" doc:"As the text spells it"`
	Score float64 `json:"score"`
}

// Rank scores all descriptions for an input with BM25: a word weighs more the fewer descriptions hold it.
// Below the threshold none is selected, and MAIN keeps the input.
func Rank(input string, descriptions []Description) Ranking {
	r := Ranking{Threshold: rankThreshold, Scores: []Candidate{}, Terms: []string{}}
	terms := termsOf(input)
	at := make(map[string]int, len(terms))
	var begins [256]bool // skips words that begin like none of the terms
	for i, t := range terms {
		at[t.stem], begins[t.stem[0]] = i, true
		r.Terms = append(r.Terms, t.word)
	}

	counts := make([][]float64, len(descriptions)) // of each term in each description; nil: none
	lengths := make([]float64, len(descriptions))
	holders := make([]float64, len(terms)) // number of descriptions that hold a term
	total := 0.0
	count := func(i int, text string, weight float64) {
		eachWord(text, func(word string) {
			if lengths[i]++; word[0] < utf8.RuneSelf && !begins[word[0]|0x20] && !begins[word[0]] {
				return
			}
			term, ok := at[stem(word)]
			if !ok {
				return
			}
			if counts[i] == nil {
				counts[i] = make([]float64, len(terms))
			}
			if counts[i][term] == 0 {
				holders[term]++
			}
			counts[i][term] += weight
		})
	}
	for i, d := range descriptions {
		if d.Name == "" {
			continue // a description without a name cannot be selected
		}
		count(i, d.Name, nameWeight)
		count(i, d.Text, 1)
		total += lengths[i]
	}

	mean := total / float64(max(len(descriptions), 1))
	for i, d := range descriptions {
		if counts[i] == nil {
			continue
		}
		c := Candidate{Name: d.Name}
		for term, n := range counts[i] {
			if n == 0 {
				continue
			}
			rare := math.Log(1 + (float64(len(descriptions))+background-holders[term]+0.5)/(holders[term]+0.5))
			often := n * (saturation + 1) / (n + saturation*(1-lengthShare+lengthShare*lengths[i]/mean))
			score := rare * often * terms[term].weight
			c.Terms = append(c.Terms, Term{Word: terms[term].word, Score: score})
			c.Score += score
		}
		slices.SortStableFunc(c.Terms, func(a, b Term) int { return cmp.Compare(b.Score, a.Score) })
		r.Scores = append(r.Scores, c)
	}
	slices.SortFunc(r.Scores, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Name, b.Name))
	})
	r.Scores = r.Scores[:min(len(r.Scores), rankCandidatesMax)]
	return r.Over(rankThreshold)
}

// Over decides the same ranking with another threshold; 0 leaves it unchanged.
func (r Ranking) Over(threshold float64) Ranking {
	if threshold <= 0 {
		return r
	}
	r.Threshold, r.Best = threshold, ""
	if len(r.Scores) == 0 {
		r.Reason = reasonNoWord
		if len(r.Terms) == 0 {
			r.Reason = "there is no word in it that says what is to be done"
		}
		return r
	}
	first := r.Scores[0]
	sum := fmt.Sprintf("%s %.2f (%s)", first.Name, first.Score, first.why())
	if first.Score < threshold {
		r.Reason = fmt.Sprintf("no agent reaches %.2f; the closest is %s", threshold, sum)
		return r
	}
	r.Best, r.Reason = first.Name, fmt.Sprintf("%s, and %.2f is enough", sum, threshold)
	return r
}

// why lists the heaviest terms.
func (c Candidate) why() string {
	var b strings.Builder
	for i, t := range c.Terms {
		if i == reasonTermsMax {
			fmt.Fprintf(&b, " and %d more", len(c.Terms)-i)
			break
		}
		if i > 0 {
			b.WriteString(" + ")
		}
		word := t.Word
		if len(word) > reasonWordMax {
			word = strings.ToValidUTF8(word[:reasonWordMax], "") + "…"
		}
		fmt.Fprintf(&b, "%q %.2f", word, t.Score)
	}
	return b.String()
}
