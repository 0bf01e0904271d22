// Package rank compares a text with the descriptions of agents, and says which agent fits best (seed 002: an
// agent's description is its transition function).
//
// The one promise: the same text and descriptions give the same result, and the result says which words
// decided.
package rank

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

const (
	// rankThreshold is slightly more than one distinctive word: a word that only one description holds weighs
	// about two, a verb that fits any work less than one.
	rankThreshold = 1.5

	saturation    = 1.2   // BM25's k1: how soon a repeated word stops counting
	lengthShare   = 0.4   // BM25's b: how much a long description costs; agents' descriptions are long
	nameWeight    = 2     // a word of the name counts as if it occurred twice
	loneWordShare = 0.4   // what remains of a candidate that shares one word that many have, or one of many
	subjectsMany  = 4     // an input with this many words that say what it is about shares more than one of them
	marginShare   = 0.9   // a second candidate with more than this share of the first one's score leaves the choice to MAIN
	weakWeight    = 0.4   // write, make, fix: used for any work
	makingWeight  = 2     // of a request for a program: it stands for a verb and a noun
	codeWeight    = 1     // of a request to change code, which many agents do
	programJoint  = " … " // between the verb and the program of a request for one
	pairDistance  = 2     // of two words of a description that make a pair: one word may be between them

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
	Weak  bool    `json:"weak,omitempty" doc:"It shares common words only, or one of many, so its scores are reduced"`
}

// Term is one word that an input and a description share, or two.
type Term struct {
	Word  string  `json:"word" doc:"As the text spells it"`
	Score float64 `json:"score"`
	Kind  Kind    `json:"kind,omitempty" doc:"What it is, if it is no word of a subject: any (fits any subject), pair (two words that follow one another), file (of a file's name), program (the text asks for a program, and the agent makes any kind)"`
}

// Kind says what a term is; empty: a word of a subject.
type Kind string

// The kinds of terms.
const (
	AnySubject Kind = "any"
	Pair       Kind = "pair"
	File       Kind = "file"
	Program    Kind = "program"
)

// Rank scores all descriptions for an input with BM25: a word weighs more the fewer descriptions hold it. These
// rules decide what counts:
//
//   - One common word selects no agent: a word that fits any subject, or that three or more descriptions hold. Nor does
//     one word of many.
//   - Two words that follow one another count as a third one: "new agent".
//   - A request to make a program counts for agents whose subject is programs of any kind.
//   - If the input is in another language than a description, only the names of agents and of files count.
//   - Below the threshold, and without a clear margin between the first two, MAIN keeps the input.
func Rank(input string, descriptions []Description) Ranking {
	input = cut(input, rankBytesMax)
	terms := termsOf(input)
	s := newSearch(terms, makingOf(input, terms))
	r := Ranking{Threshold: rankThreshold, Scores: []Candidate{}, Terms: []string{}}
	subjects := 0 // words of the input that say what it is about
	for _, t := range terms {
		if t.weight > 0 {
			r.Terms = append(r.Terms, t.word)
		}
		if t.weight == 1 && t.spaced() && !t.file {
			subjects++
		}
	}
	found := s.inAll(descriptions)
	language, foreign := languageOf(input), 0
	for i, d := range descriptions {
		if found[i].counts == nil {
			continue
		}
		named := isNamed(input, d.Name)
		filesOnly := !named && language != "" && !speaks(d, language)
		c, words, own := s.candidate(d.Name, found[i], filesOnly)
		switch {
		case len(c.Terms) == 0 && filesOnly:
			foreign++
		case named:
		case words == 0:
			c.reduce(loneWordShare * weakWeight)
		case words == 1 && (!own || subjects >= subjectsMany):
			c.reduce(loneWordShare)
		}
		if len(c.Terms) > 0 {
			slices.SortStableFunc(c.Terms, func(a, b Term) int { return cmp.Compare(b.Score, a.Score) })
			r.Scores = append(r.Scores, c)
		}
	}
	slices.SortFunc(r.Scores, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Name, b.Name))
	})
	r.Scores = r.Scores[:min(len(r.Scores), rankCandidatesMax)]
	if foreign > 0 {
		r.Reason = fmt.Sprintf("it is in %s, and no description in %[1]s shares a word with it", languages[language])
	}
	return r.Over(rankThreshold)
}

// reduce leaves a share of a candidate's scores.
func (c *Candidate) reduce(share float64) {
	c.Score, c.Weak = 0, true
	for i := range c.Terms {
		c.Terms[i].Score *= share
		c.Score += c.Terms[i].Score
	}
}

// Over decides the same ranking with another threshold; 0 leaves it unchanged.
func (r Ranking) Over(threshold float64) Ranking {
	if threshold <= 0 {
		return r
	}
	r.Threshold, r.Best = threshold, ""
	if len(r.Scores) == 0 { // the reason does not depend on the threshold
		if len(r.Terms) == 0 {
			r.Reason = "there is no word in it that says what is to be done"
		}
		r.Reason = cmp.Or(r.Reason, reasonNoWord)
		return r
	}
	first := r.Scores[0]
	sum := fmt.Sprintf("%s %.2f (%s)", first.Name, first.Score, first.why())
	if first.Score < threshold {
		r.Reason = fmt.Sprintf("no agent reaches %.2f; the closest is %s", threshold, sum)
		return r
	}
	if len(r.Scores) > 1 && r.Scores[1].Score > first.Score*marginShare {
		second := r.Scores[1]
		r.Reason = fmt.Sprintf("no clear choice between %s and %s %.2f (%s)", sum, second.Name, second.Score, second.why())
		return r
	}
	r.Best, r.Reason = first.Name, fmt.Sprintf("%s, and %.2f is enough", sum, threshold)
	return r
}

// Choice says why MAIN keeps an input, with the candidates; empty: an agent gets it, or there is no candidate that
// shares more than a common word.
func (r Ranking) Choice() string {
	if r.Best != "" || len(r.Scores) == 0 || r.Scores[0].Weak {
		return ""
	}
	return "By the descriptions, " + r.Reason + "."
}

// Words are the words of the input that a candidate shares, each once, the heaviest first.
func (c Candidate) Words() []string {
	var all []string
	for _, t := range c.Terms {
		parts := []string{t.Word}
		switch t.Kind {
		case Program:
			parts = strings.Split(t.Word, programJoint)
		case Pair, AnySubject, File:
			parts = strings.Fields(t.Word)
		}
		for _, word := range parts {
			if !slices.Contains(all, word) {
				all = append(all, word)
			}
		}
	}
	return all
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
		fmt.Fprintf(&b, "%q %.2f", clip.Text(t.Word, reasonWordMax), t.Score)
	}
	return b.String()
}
