package adapter

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// The reasons for the end of a session that no decision depends on; package session has the others.
const (
	ReasonCompleted  = "completed"
	ReasonFailed     = "failed"
	ReasonCancelled  = "cancelled"
	ReasonTerminated = "terminated"
)

// ServerName is the name under which every program sees Fairlead's MCP server: mcp__fairlead__say.
const ServerName = "fairlead"

const (
	WhatBytesMax   = 400     // of the description of a call, in one line
	NoticeBytesMax = 4 << 10 // of a program's message about itself
	DeniedMax      = 64      // calls that are remembered as denied
)

// Reporter reports what a protocol finds beside the agent's words.
type Reporter struct{ Out *speech.Writer }

// Fault reports a message that was not understood.
func (r Reporter) Fault(text string, raw json.RawMessage) {
	r.Out.Tell(driver.Fact{Kind: driver.Faulted, Text: text, Raw: speech.CutRaw(raw)})
}

// Notice reports a message of the program about itself, which does not count as the agent's words.
func (r Reporter) Notice(text string) {
	if text = Clipped(text, NoticeBytesMax); text != "" {
		r.Out.Tell(driver.Fact{Kind: driver.Said, Tool: "program", Text: text})
	}
}

// Clipped is OneLine with at most so many bytes.
func Clipped(text string, most int) string { return clip.Text(OneLine(text), most) }

// WithDenied appends the denied calls to the description of an end, each once.
func WithDenied(detail string, calls []string) string {
	const namedMax = 5
	var named []string
	for _, c := range calls {
		if !slices.Contains(named, c) {
			named = append(named, c)
		}
	}
	if len(named) == 0 {
		return detail
	}
	words := "denied: " + strings.Join(named[:min(len(named), namedMax)], ", ")
	if len(named) > namedMax {
		words += fmt.Sprintf(" and %d more", len(named)-namedMax)
	}
	return strings.TrimPrefix(detail+"; "+words, "; ")
}

// Number is a number of a program, or 0 if the field holds another type.
type Number float64

// UnmarshalJSON accepts any value.
func (n *Number) UnmarshalJSON(b []byte) error {
	var f float64
	if json.Unmarshal(b, &f) == nil && f >= 0 && !math.IsInf(f, 0) {
		*n = Number(f)
	}
	return nil
}

// Count returns the number as a token count, which has a limit that no model reaches.
func (n Number) Count() int64 {
	const tokensMax = 1 << 50
	return int64(min(float64(n), tokensMax))
}

// Digits converts a number that a pattern has matched; an empty text is 0.
func Digits(s string) int {
	n, _ := strconv.Atoi(s) // too many digits give the largest number
	return n
}

// ClockTime returns a time that a program has written in the zone of now, such as "Mar 10 2026 3:39 AM". Without a
// month it is the next time that the clock shows it; without a year, the next such day, or one of the last month. It
// returns zero if there is no such month.
func ClockTime(now time.Time, month, day, year, hour, minute, half string) time.Time {
	h, m := Digits(hour)%12, Digits(minute)
	if strings.EqualFold(half, "pm") {
		h += 12
	}
	if month == "" {
		y, mo, d := now.Date()
		at := time.Date(y, mo, d, h, m, 0, 0, now.Location())
		if !at.After(now) {
			at = time.Date(y, mo, d+1, h, m, 0, 0, now.Location())
		}
		return at.UTC()
	}
	named, err := time.Parse("Jan", strings.ToUpper(month[:1])+strings.ToLower(month[1:]))
	if err != nil {
		return time.Time{}
	}
	y := Digits(year)
	if year == "" {
		y = now.Year()
	}
	at := time.Date(y, named.Month(), Digits(day), h, m, 0, 0, now.Location())
	if year == "" && at.Before(now.AddDate(0, -1, 0)) { // in December, a date in January is next year's
		at = at.AddDate(1, 0, 0)
	}
	return at.UTC()
}

// CheckArguments finds an argument in an agent's command that Fairlead sets itself. Each has the setting of
// fairlead.yaml for it, if there is one: restrictions of an agent must be configured in one place, so that they can be
// shown.
func CheckArguments(a driver.Agent, own map[string]string) error {
	for _, word := range a.Command[1:] {
		name, _, _ := strings.Cut(word, "=")
		switch setting, is := own[name]; {
		case is && setting == "":
			return fmt.Errorf("agent %s: Fairlead sets %s itself; remove it from `command`", a.Name, name)
		case is:
			return fmt.Errorf("agent %s: use %s instead of %s, and remove that from `command`", a.Name, setting, name)
		}
	}
	return nil
}

// WithCommand adds the default program to an agent without a command.
func WithCommand(a driver.Agent, program string) driver.Agent {
	if len(a.Command) == 0 {
		a.Command = []string{program}
	}
	return a
}

// ProbeProgram asks a program for its version, and in a help text for the flags that Fairlead uses. help are the
// arguments that print that text. What it finds is added to found.
func (s *Stage) ProbeProgram(ctx context.Context, found *driver.Probed, command, help, flags []string) error {
	says, err := s.Printed(ctx, append(slices.Clip(command), "--version"))
	if err != nil {
		return fmt.Errorf("ask %s for its version: %w", found.Path, err)
	}
	if number := VersionIn(says); number != "" {
		found.Program += " " + number
	} else {
		found.Warnings = append(found.Warnings, "it does not print its version; is this the right program?")
	}
	if says, err = s.Printed(ctx, append(slices.Clip(command), help...)); err != nil {
		return fmt.Errorf("ask %s for its flags: %w", found.Path, err)
	}
	what := "it"
	if len(help) > 1 {
		what = "`" + strings.Join(help[:len(help)-1], " ") + "`"
	}
	for _, flag := range flags {
		if !strings.Contains(says, flag) {
			found.Warnings = append(found.Warnings, fmt.Sprintf("%s does not know the flag %s; use another version", what, flag))
		}
	}
	return nil
}

// APIError reports whether the only text of an answer is an error of the provider. Programs were seen
// to give such a text as a successful answer: "API Error: 529 {…}", "[API Error: no model]", "Error:
// 400 …". An answer of several paragraphs that begins like this is the model's.
func APIError(text string) bool {
	text = strings.TrimSpace(text)
	return apiError.MatchString(text) && !strings.Contains(text, "\n\n")
}

var apiError = regexp.MustCompile(`^\[?(API Error\b|Error:? \(?(HTTP |status )?[45]\d\d\b)`)

// OneLine formats untrusted text in one line, without terminal control sequences.
func OneLine(s string) string {
	s = driver.WithoutEscapes(s)
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
}
