package question

import (
	"github.com/fairlead-dev/fairlead/core/table"
)

// State is the state of a question.
type State string

const (
	None      State = "none"
	Open      State = "open"      // waits for a person
	Answered  State = "answered"  // not delivered yet
	Delivered State = "told"      // delivered
	Withdrawn State = "withdrawn" // withdrawn before it was delivered
)

// Event is what happened to a question.
type Event string

const (
	Raised    Event = "raised"     // no rule and no saved answer covers it
	Ruled     Event = "ruled"      // a rule of the configuration or a saved answer covers it
	Replied   Event = "replied"    // a person answered
	TimeUp    Event = "time_up"    // the time ran out, and the default answers
	TakenBack Event = "taken_back" // by its program, or with its session
	Handed    Event = "handed"     // the answer was delivered
)

// Act is what a row does with the data.
type Act string

const (
	Keep        Act = "keep"         // keep the question as asked
	TakeRule    Act = "take_rule"    // the answer, and the rule that gave it
	TakeAnswer  Act = "take_answer"  // the answer and its author
	TakeDefault Act = "take_default" // the default answer
	LetStand    Act = "let_stand"    // save the answer for similar questions, if the person chose so
	NoteEnd     Act = "note_end"
)

func do(acts ...Act) []Act { return acts }

// Table is the life of a question. The rows are Fairlead's own: SPEC says that a question waits (T10) and
// that rules deny (D8, X10), and leaves the rest open.
var Table = table.Table[State, Event, Act]{
	None: {
		Raised: {ID: "Q1", To: Open, Do: do(Keep)},
		Ruled:  {ID: "Q2", To: Answered, Do: do(Keep, TakeRule), Why: "no person is asked; it is recorded like any other question"},
	},
	Open: {
		Ruled:     {ID: "Q2", To: Answered, Do: do(TakeRule), Why: "an answer saved from another question covers it"},
		Replied:   {ID: "Q3", To: Answered, Do: do(TakeAnswer, LetStand)},
		TimeUp:    {ID: "Q4", To: Answered, Do: do(TakeDefault)},
		TakenBack: {ID: "Q5", To: Withdrawn, Do: do(NoteEnd)},
	},
	Answered: {
		Handed:    {ID: "Q6", To: Delivered, Do: do(NoteEnd)},
		TakenBack: {ID: "Q5", To: Withdrawn, Do: do(NoteEnd), Why: "its session ended before the answer was delivered"},
	},
}
