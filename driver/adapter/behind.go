package adapter

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
)

// Behind is what every driver behind an adapter has in common on the daemon's side; a driver embeds it.
// What is its own is how its program is started and looked at, and its protocol.
type Behind struct{}

// Converse listens to one session and tells it things.
func (Behind) Converse(_ driver.Agent, _ driver.Session, w driver.Wire) driver.Conversation {
	return Converse(w)
}

// Outcome believes the terminal event, and nothing else.
func (Behind) Outcome(s driver.Session, exit driver.Exit, stop *driver.Stop) driver.Outcome {
	return Outcome(s, exit, stop)
}

// TakesInput is true: the adapter keeps prompts until it is their turn.
func (Behind) TakesInput() bool { return true }

// Steers is false: what is said in the middle of an answer is heard after it. A program that would mix
// it into the answer would leave nobody to say which words answer what.
func (Behind) Steers() bool { return false }

// Resumes is true: all protocols have it. Whether a program does is known when it is tried, and a session
// that cannot go on says so.
func (Behind) Resumes(driver.Agent) bool { return true }

const (
	printPatience = 20 * time.Second // of one start; some programs load for seconds on a busy machine
	printBytesMax = 256 << 10        // of a help text
)

// Printed starts a program that prints something and ends, and gives what it printed.
func (s *Stage) Printed(ctx context.Context, argv []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, printPatience)
	defer cancel()
	child, err := s.Start(Command{Argv: argv})
	if err != nil {
		return "", err
	}
	child.CloseInput()
	var b strings.Builder
	for {
		select {
		case l, ok := <-child.Lines():
			if !ok {
				if ended := child.End(); ended.Exit.Code != 0 && b.Len() == 0 {
					return "", fmt.Errorf("%s", ended)
				}
				return b.String(), nil
			}
			if b.Len() < printBytesMax {
				b.Write(l.Bytes)
				b.WriteByte('\n')
			}
		case <-ctx.Done():
			child.End()
			return "", fmt.Errorf("it printed nothing that ended within %s", printPatience)
		}
	}
}

var versionNumber = Words(`\d+\.\d+\.\d+[\w.+-]*`)

// VersionIn finds a version in what a program prints of itself; empty: there is none.
func VersionIn(text string) string { return versionNumber().FindString(text) }
