package adapter

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/internal/lazy"
)

// Behind holds what all drivers behind an adapter have in common on the daemon's side; a driver
// embeds it. Each driver adds how its program is started and probed, and its protocol.
type Behind struct{}

// Converse returns the conversation of one session.
func (Behind) Converse(_ driver.Agent, _ driver.Session, w driver.Wire) driver.Conversation {
	return Converse(w)
}

// Outcome is decided by the terminal event alone.
func (Behind) Outcome(s driver.Session, exit driver.Exit, stop *driver.Stop) driver.Outcome {
	return Outcome(s, exit, stop)
}

// Capabilities are those of a program behind an adapter. The adapter keeps a prompt until the current
// answer is over, because a program that mixed it into the answer could not say which words answer
// which prompt. All protocols can resume a conversation; a session that fails to resume reports it.
func (Behind) Capabilities(driver.Agent, driver.Kind) driver.Capabilities {
	return driver.Capabilities{Input: true, Prompts: true, Resumes: true, Asks: true, Answers: true, Probes: true}
}

const (
	printPatience = 20 * time.Second // time limit of one start; some programs load for seconds on a busy machine
	printBytesMax = 256 << 10        // size limit, for a help text
)

// Printed starts a program that prints something and ends, and returns the output.
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
			return "", fmt.Errorf("its output did not end within %s", printPatience)
		}
	}
}

var versionNumber = lazy.Regexp(`\d+\.\d+\.\d+[\w.+-]*`)

// VersionIn returns the version in a program's output; empty if there is none.
func VersionIn(text string) string { return versionNumber().FindString(text) }
