package script

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// step plays one step.
func (p *player) step(s *Step) error {
	switch s.Verb {
	case "say":
		return p.speak(driver.Said, s)
	case "think":
		return p.speak(driver.Thought, s)
	case "usage":
		p.out.Tell(driver.Fact{Kind: driver.UsageReported, Usage: s.Usage})
	case "emit":
		p.out.Print([]byte(strings.Repeat(s.Text, s.Times)))
	case "ask":
		return p.ask(s)
	case "fail":
		return failed{p.text(s.Text), s.Code}
	case "crash":
		return errGone
	case "run":
		return p.run(s)
	case "sleep":
		return p.rest(s.Sleep)
	case "expect_prompt":
		return p.expectPrompt()
	case "hang":
		if s.Text != "" {
			p.out.Say(driver.Thought, "", p.text(s.Text))
		}
		return p.await(nil, nil, 0)
	default:
		panic("script: a step without a verb: " + s.Verb)
	}
	return nil
}

// speak reports a text line by line, and each line word by word if the step has a delay.
func (p *player) speak(kind driver.FactKind, s *Step) error {
	for line := range strings.SplitSeq(strings.TrimSuffix(p.text(s.Text), "\n"), "\n") {
		words := []string{line}
		if s.Delay > 0 {
			words = strings.SplitAfter(line, " ")
		}
		for i, word := range words {
			more := i < len(words)-1
			p.out.Tell(driver.Fact{Kind: kind, Text: word, Part: more})
			if !more {
				break
			}
			// After SIGTERM the rest is said without a delay; the script stops after this step.
			if err := p.rest(s.Delay); err != nil && !errors.Is(err, errTerminated) {
				return err
			}
		}
	}
	return nil
}

// ask asks for permission and waits for the answer.
func (p *player) ask(s *Step) error {
	p.asked++
	id := "ask-" + strconv.Itoa(p.asked)
	options := []driver.Option{{ID: "allow", Kind: "allow_once"}, {ID: "deny", Kind: "reject_once"}}
	if len(s.Options) > 0 {
		options = nil
		for _, o := range s.Options {
			options = append(options, driver.Option{ID: o, Kind: kindOf(o)})
		}
	}
	args := make(map[string]string, len(s.Args))
	for name, value := range s.Args {
		args[name] = speech.CutText(p.text(value))
	}
	p.out.Tell(driver.Fact{
		Kind: driver.PermissionAsked, Tool: p.text(s.Tool), Text: p.text(s.Text), Args: speech.Args(args),
		Ask: driver.Ask{ID: id, Options: options},
	})
	answered := func() bool { _, ok := p.answers[id]; return ok }
	if err := p.await(answered, nil, s.Timeout); err != nil {
		return err
	}
	answer, ok := p.answers[id]
	switch known := slices.ContainsFunc(options, func(o driver.Option) bool { return o.ID == answer }); {
	case !ok:
		answer = "no answer"
		p.out.Tell(driver.Fact{Kind: driver.PermissionWithdrawn, Ask: driver.Ask{ID: id}})
		p.out.Say(driver.Thought, "", fmt.Sprintf("no answer came within %v", s.Timeout))
	case !known: // an answer that was not offered never allows the call
		p.out.Tell(driver.Fact{
			Kind: driver.Faulted,
			Text: fmt.Sprintf("%s was answered with %q, which was not offered", id, clip(answer)),
		})
		answer = "not offered"
	default:
		p.out.Tell(driver.Fact{Kind: driver.PermissionAnswered, Ask: driver.Ask{ID: id}, Text: answer})
	}
	p.answer = answer
	return nil
}

// kindOf derives the kind of an answer from its first word: allow… allows, everything else does not.
func kindOf(option string) string {
	if strings.HasPrefix(strings.ToLower(option), "allow") {
		return "allow_once"
	}
	return "reject_once"
}

// expectPrompt takes the next prompt from the queue. The first one is the prompt with which the session started. If
// the queue is empty, it reports Listening: a sender that waits for the end of each answer then sends the next prompt.
func (p *player) expectPrompt() error {
	if err := p.lookUp(); err != nil {
		return err
	}
	if len(p.prompts) == 0 {
		p.out.Tell(driver.Fact{Kind: driver.Listening, Input: p.taken})
	}
	if err := p.await(func() bool { return len(p.prompts) > 0 || p.noMorePrompts }, nil, 0); err != nil {
		return err
	}
	if len(p.prompts) == 0 {
		return errNoMorePrompts
	}
	next := p.prompts[0]
	p.prompt, p.prompts = next.text, p.prompts[1:]
	if next.steer != "" {
		p.out.Tell(driver.Fact{Kind: driver.TextRead, Ask: driver.Ask{ID: next.steer}, Text: next.text})
	}
	return nil
}
