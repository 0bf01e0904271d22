package questions

import (
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/table"
)

// The rates of one agent's questions, each with a number at once and then one per interval. A person answers one in some seconds;
// a rule answers at once, and a program asks it before each of its calls. Without rates, a program that asks and takes back, or
// asks what a rule denies, fills the journal, and the inbox again and again.
const (
	AskedMax   = 60
	AskedEvery = 2 * time.Second
	RuledMax   = 1000
	RuledEvery = 50 * time.Millisecond
)

// MayAsk refuses a question above its agent's rate. ruled means that no person has to answer it. It runs in the loop.
func (c *Controller) MayAsk(agent string, ruled bool) error {
	bucket, most, every := &c.asked, AskedMax, AskedEvery
	if ruled {
		bucket, most, every = &c.ruled, RuledMax, RuledEvery
	}
	wait := bucket.Wait(agent, c.loop.Now())
	if wait == 0 {
		return nil
	}
	return &table.Refusal{
		Subject: agent, Event: string(question.Raised), State: "asked too often", Row: "X9",
		Reason: fmt.Sprintf("%s has asked %d questions and may now ask one every %v; wait %v, and put several questions into one", agent,
			most, every, wait.Round(time.Millisecond)),
	}
}
