package jetstream

import "time"

// An attempt decides what the answers of the servers mean for one append.
//
// A server stores a message only at the place that its writer expects. Its answers are
// weaker than they look. No answer may mean that the message is stored. Error 10071, "wrong last sequence",
// is no proof of another writer: a server that is cut off from its peers gives it to a second try of the
// same append, although nothing was stored. Equal bytes are no proof of authorship either.
//
// So a writer gives each append one id, repeats it under the same id at the same place, and looks at what is
// stored there. A message with its id means that it was stored. Another one means a conflict. If the place is
// empty, nothing is known, and it tries again. A reader that lags only makes it try once more.
//
// An append is called stored or in conflict only on proof, and never both.

// ReconnectAfter is how long a client goes without proof before it connects to another server: one that is cut
// off from its peers, but not from its clients, keeps them waiting for half a minute.
const ReconnectAfter = 3 * time.Second

// Attempt is one append with all its tries. Make it with NewAttempt. It has no clock and no connection: it is given the answers and
// says what to do next.
type Attempt struct {
	id     string
	place  uint64
	silent time.Duration
	over   Step
}

// Step is what to do next.
type Step string

const (
	Publish   Step = "publish"   // send the message with MessageID, at Place
	Look      Step = "look"      // read what is stored at Place
	Reconnect Step = "reconnect" // to another server, then look
	Stored    Step = "stored"    // it is stored at Place
	Conflict  Step = "conflict"  // another message is stored at Place: this one never will be
)

// Answer is what the server said to a try.
type Answer string

const (
	Acknowledged Answer = "acknowledged"
	WrongLast    Answer = "wrong_last" // error 10071
	NoAnswer     Answer = "no_answer"  // a timeout or a lost connection
)

// NewAttempt begins an append of one message. id is unlike all others, of all writers. last is the place of the last
// message of the journal, as the caller has read it: the message gets the place after it, or none.
func NewAttempt(id string, last uint64) *Attempt { return &Attempt{id: id, place: last + 1} }

// MessageID is the id of the message, the same for each try.
func (a *Attempt) MessageID() string { return a.id }

// Place is the only place that the message may get.
func (a *Attempt) Place() uint64 { return a.place }

// Answered takes in the answer to a try that took so long. Only a positive one is proof.
func (a *Attempt) Answered(answer Answer, took time.Duration) Step {
	if a.over != "" {
		return a.over
	}
	if a.silent += took; answer == Acknowledged {
		a.over = Stored
		return Stored
	}
	if a.silent >= ReconnectAfter {
		a.silent = 0
		return Reconnect
	}
	return Look
}

// Read takes in what is stored at Place: the id of a message, or empty for nothing, as far as the reader knows.
func (a *Attempt) Read(id string) Step {
	switch {
	case a.over != "":
	case id == "":
		return Publish
	case id == a.MessageID():
		a.over = Stored
	default:
		a.over = Conflict
	}
	return a.over
}
