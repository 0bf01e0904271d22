package change

// Input is something that happened, for the machine whose events are of the type E: no machine takes an input of another one.
type Input[E ~string] interface{ Subject() Subject[E] }

// Subject says what an input is about, so that no caller has to look at the types of inputs. An empty field names nothing.
type Subject[E ~string] struct {
	Event   E      // the word for the input in refusals
	Entity  string // in the machine: a channel, a host, a question, a step
	Agent   string
	Session string
	Starts  bool // it is a request to start something
}
