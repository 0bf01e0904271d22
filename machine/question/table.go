package question

import "github.com/fairlead-dev/fairlead/machine"

// State is how far a question is.
type State string

const (
	None      State = "none"
	Open      State = "open"      // it waits for a person
	Answered  State = "answered"  // who asked has not been told yet
	Told      State = "told"      // he has
	Withdrawn State = "withdrawn" // nobody wants to know any more
)

// Event is what happened to a question.
type Event string

const (
	Raised    Event = "raised"     // nothing that is known answers it
	Ruled     Event = "ruled"      // a rule of the configuration, or an answer that stands, covers it
	Replied   Event = "replied"    // a person answers
	TimeUp    Event = "time_up"    // nobody has, and what is to happen then is known
	TakenBack Event = "taken_back" // by who asked, or with the session that asked
	Handed    Event = "handed"     // who asked was told
)

// Act is what a rule does with the data.
type Act string

const (
	Keep        Act = "keep"         // the question as it was asked
	TakeRule    Act = "take_rule"    // the answer, and which rule gave it
	TakeAnswer  Act = "take_answer"  // the answer, and whose it is
	TakeDefault Act = "take_default" // what is to happen when nobody answers
	LetStand    Act = "let_stand"    // the answer also answers the next ones like it, where the person said so
	NoteEnd     Act = "note_end"
)

func do(acts ...Act) []Act { return acts }

// Table is the life of a question. The rows are ours: SPEC has a question of an agent wait (T10) and
// deny by rules (D8, X10), and leaves open what becomes of it between.
var Table = machine.Table[State, Event, Act]{
	None: {
		Raised: {ID: "Q1", To: Open, Do: do(Keep)},
		Ruled:  {ID: "Q2", To: Answered, Do: do(Keep, TakeRule), Why: "nobody need be asked; it is on record like any other"},
	},
	Open: {
		Ruled:     {ID: "Q2", To: Answered, Do: do(TakeRule), Why: "an answer that was given to another one stands for this one too"},
		Replied:   {ID: "Q3", To: Answered, Do: do(TakeAnswer, LetStand)},
		TimeUp:    {ID: "Q4", To: Answered, Do: do(TakeDefault)},
		TakenBack: {ID: "Q5", To: Withdrawn, Do: do(NoteEnd)},
	},
	Answered: {
		Handed:    {ID: "Q6", To: Told, Do: do(NoteEnd)},
		TakenBack: {ID: "Q5", To: Withdrawn, Do: do(NoteEnd), Why: "who asked is gone before he could be told"},
	},
}
