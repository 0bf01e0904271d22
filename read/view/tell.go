package view

// When an agent reads what it was told.
const (
	TellAtOnce      = "at_once"      // it was written to the program, which reads it before its next step; if there is none, as below
	TellAfterAnswer = "after_answer" // the step goes on with it when the answer is over
	TellNextSession = "next_session" // the agent's next session begins with it
)

// TellResult is the result of telling an agent something.
type TellResult struct {
	Seq     uint64 `json:"seq" doc:"Of the change in the journal"`
	Agent   string `json:"agent"`
	Session string `json:"session" doc:"The session that ran"`
	When    string `json:"when" enum:"at_once,after_answer,next_session"`
}
