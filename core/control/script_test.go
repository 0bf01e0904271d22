package control

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// A script contains comments, input lines, a line of dashes, and the expected result. An empty line
// ends a block. The next block continues with the same agent, until `agent` creates a new one. A
// line may begin with a time of day; otherwise it happens a second after the line before.
//
//	agent [foreign] [program] [cleanup_every=N] [failures_max=N]     creates an agent whose file was not read yet
//	configured …                                                     configures the agent again
//	human wants WORD "note"       agent wants WORD "note"            through API or CLI
//	[first] file {…}              file missing                       the file is read
//	session file {…}, asked file {…}                                 written during a session, and a person was asked about it already
//	replaced file {…}                                                found in a file that a write of Fairlead replaced
//	file broken "fault" [torn]
//	session ended ok|failed|… ["why"] [at start] [ran=D]             the open session
//	session adopted
//	daemon started     stop     hold     release
//	limit "name"                                                     reached by the open session
//	over "name"        under                                         a daily limit is used up, or no longer
//	held               stopping                                      the switch is set, and the agent does not have it yet
//	timer              late timer
func TestScripts(t *testing.T) {
	golden.Stories(t, "*.script", func(t *testing.T, script string) string { return (&stage{t: t}).play(script) })
}

// stage runs a script.
type stage struct {
	t     *testing.T
	agent Control
	now   Now
	open  Kind // kind of the open session
	shown string
	out   strings.Builder
}

// play runs a script and returns it with its actual results.
func (s *stage) play(script string) string {
	return machinetest.Play(script, &s.out, func(line string) bool { s.line(line); return true }, s.showFile)
}

func (s *stage) line(line string) {
	words := machinetest.Fields(line)
	s.now.At, words = machinetest.Next(s.now.At, words)
	switch words[0] {
	case "agent":
		if len(words) > 1 && words[1] == "wants" {
			s.decide(Commanded{By: "agent", Desired: words[2], Note: rest(words, 3)})
			return
		}
		s.agent = Control{Name: "coder", Value: Value{State: Absent}}
		s.now, s.open, s.shown = Now{At: machinetest.Noon}, "", ""
		s.configure(words[1:])
	case "configured":
		s.configure(words[1:])
	case "human":
		s.decide(Commanded{By: "human", Desired: words[2], Note: rest(words, 3)})
	case "first", "file", "replaced":
		s.decide(s.look(words, line))
	case "session", "asked":
		if words[1] == "file" {
			s.now.InSession, s.now.Asked = true, words[0] == "asked"
			s.decide(s.look(words[1:], line))
			s.now.InSession, s.now.Asked = false, false
			return
		}
		s.session(words[1:])
	case "daemon":
		s.now.Stopping = false
		s.decide(Started{})
	case "stop":
		s.now.Stopping = true
		s.decide(Stopping{})
	case "hold":
		s.now.Held = true
		s.decide(Held{})
	case "release":
		s.now.Held = false
		s.decide(Released{})
	case "limit":
		s.decide(LimitHit{Limit: words[1]})
	case "over":
		s.now.OverLimit = words[1]
	case "held":
		s.now.Held = true
	case "stopping":
		s.now.Stopping = true
	case "under":
		s.now.OverLimit = ""
	case "timer":
		s.now.At = s.agent.Retry()
		s.decide(Elapsed{RetryAt: s.agent.Retry()})
	case "late":
		s.decide(Elapsed{RetryAt: s.now.At.Add(-time.Hour)})
	default:
		s.t.Fatalf("unknown line: %s", line)
	}
}

func (s *stage) configure(words []string) {
	s.agent.Policy = policy
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		number, _ := strconv.Atoi(value)
		switch key {
		case "foreign":
			s.agent.Policy.Foreign = true
		case "program":
			s.agent.Policy.Program = true
		case "cleanup_every":
			s.agent.Policy.CleanupEvery = number
		case "failures_max":
			s.agent.Policy.FailuresMax = number
		default:
			s.t.Fatalf("unknown setting: %s", word)
		}
	}
}

func (s *stage) look(words []string, line string) Input {
	first, replaced := words[0] == "first", words[0] == "replaced"
	if first || replaced {
		words = words[1:]
	}
	switch words[1] {
	case "missing":
		return FileGone{}
	case "broken":
		return FileBroken{
			Fault: words[2], KeptAs: "agent_state.json.corrupt-" + s.now.At.Format("150405"),
			Torn: len(words) > 3 && words[3] == "torn",
		}
	}
	var known struct {
		Desired string `json:"desired_state"`
		Current string `json:"current_state"`
		By      string `json:"setBy"`
		Note    string `json:"note"`
		At      string `json:"timestamp"`
	}
	text := line[strings.Index(line, "{"):]
	extra := map[string]any{}
	if err := json.Unmarshal([]byte(text), &known); err != nil {
		s.t.Fatalf("%s: %v", line, err)
	}
	if err := json.Unmarshal([]byte(text), &extra); err != nil {
		s.t.Fatalf("%s: %v", line, err)
	}
	for _, name := range []string{"desired_state", "current_state", "setBy", "note", "timestamp"} {
		delete(extra, name)
	}
	in := FileRead{
		Desired: known.Desired, Current: known.Current, By: known.By, Note: known.Note, Stamp: s.now.At, First: first,
		Swapped: replaced,
	}
	switch {
	case strings.HasPrefix(known.At, "9999"):
		in.Stamp = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)
	case known.At == "old":
		in.Stamp = s.agent.Stamp.Add(-time.Minute)
	case known.At == "none":
		in.Stamp = time.Time{}
	}
	if len(extra) > 0 {
		packed, _ := json.Marshal(extra)
		in.Extra = string(packed)
	}
	return in
}

func (s *stage) session(words []string) {
	if words[0] == "adopted" {
		s.decide(Adopted{})
		return
	}
	ended := Ended{Kind: s.open, Outcome: Outcome(words[1])}
	for _, word := range words[2:] {
		switch {
		case strings.HasPrefix(word, "ran="):
			ended.Ran, _ = time.ParseDuration(word[4:])
		case word == "at":
		case word == "start":
			ended.AtStart = true
		default:
			ended.Why = word
		}
	}
	s.open = ""
	s.decide(ended)
}

func (s *stage) decide(in Input) {
	changes, err := decide(s.t, &s.agent, in, s.now)
	switch {
	case err != nil:
		fmt.Fprintf(&s.out, "refused: %v\n", err)
	case len(changes) == 0:
		s.out.WriteString("nothing\n")
	}
	for _, ch := range changes {
		s.agent.Apply(ch)
		fmt.Fprintf(&s.out, "%-24s %-4s %s\n", ch.From+" -> "+ch.To, ch.Row, ch.Trigger)
		if kind := Opens(ch); kind != "" {
			if s.open != "" {
				s.t.Fatalf("a second session is opened at %s", ch.Trigger)
			}
			s.open = kind
			fmt.Fprintf(&s.out, "  opens %s\n", kind)
		}
		if Ends(ch) {
			fmt.Fprintf(&s.out, "  ends it: %s\n", bodyOf(ch).Value.Limit)
		}
		if wait := bodyOf(ch).Value.RetryAt; !wait.IsZero() && !wait.Equal(s.now.At) && waits(ch) {
			fmt.Fprintf(&s.out, "  tries again in %s\n", wait.Sub(s.now.At))
		}
	}
}

func waits(ch change.Change) bool { return slices.Contains(actsOf(ch), StartBackoff) }

// showFile prints the content of the file if a block changed it.
func (s *stage) showFile() {
	f := s.agent.File(s.now.Held)
	text := fmt.Sprintf("desired %s, current %s, set by %s: %q", f.Desired, f.Current, f.By, f.Note)
	if f.Extra != "" {
		text += " " + f.Extra
	}
	text += " at " + f.Stamp.Format("15:04:05.000")
	if text != s.shown {
		s.out.WriteString("= " + text + "\n")
	}
	s.shown = text
}

func rest(words []string, from int) string {
	if len(words) > from {
		return words[from]
	}
	return ""
}
