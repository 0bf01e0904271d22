package policy

// Description is one state that an input may lead to: its name and the words that say when
// (seed 002: agent descriptions are transition functions).
type Description struct {
	Name string `json:"name"`
	Text string `json:"description"`
}

// Ranking is every description held against one input, best first, ties by name.
type Ranking struct {
	Best      string      `json:"best"`   // who takes over; empty: nobody matches
	Reason    string      `json:"reason"` // why, or why nobody
	Threshold float64     `json:"threshold"`
	Terms     []string    `json:"terms"` // the input's words as they were looked for
	Scores    []Candidate `json:"scores"`
}

// Candidate is one description's place in a Ranking. Only those with a term in common are listed.
type Candidate struct {
	Name  string  `json:"name"`
	Score float64 `json:"score"` // the sum of its terms
	Terms []Term  `json:"terms"` // the heaviest first
}

// Term is one word that an input and a description share.
type Term struct {
	Word  string  `json:"word"` // as the input spells it
	Score float64 `json:"score"`
}

// Rank holds an input against all descriptions.
func Rank(input string, descriptions []Description) Ranking {
	return Ranking{Reason: "nobody was asked"}
}

// NamedPaths are the paths that a user's words name.
func NamedPaths(input string) []string { return nil }
