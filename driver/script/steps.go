package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/speech"
)

// step plays one step.
func (p *player) step(s *Step) error {
	switch s.Verb {
	case "say":
		return p.speak(driver.Said, s)
	case "think":
		return p.speak(driver.Thought, s)
	case "write", "append", "edit":
		return p.change(s)
	case "run":
		return p.run(s)
	case "sleep":
		return p.rest(s.From + time.Duration(p.draw.Int64N(int64(s.To-s.From)+1)))
	case "usage":
		p.out.Tell(event{
			Type:  driver.UsageReported,
			Usage: driver.Usage{InputTokens: s.Tokens[0], OutputTokens: s.Tokens[1], CostUSD: s.CostUSD, Model: s.Model},
		})
	case "fail":
		return failed{p.text(s.Text), s.Code}
	case "crash":
		if err := p.stage.World.Crash(s.Signal); err != nil {
			return err
		}
		return crashed{s.Signal}
	case "spawn":
		return p.spawn(s)
	case "count":
		return p.count(s)
	case "emit":
		p.out.Print(append(alphabet(s.N), s.Bytes...))
	case "hang":
		return p.hang(s)
	case "ask":
		return p.ask(s)
	case "expect_prompt":
		return p.expectPrompt(s)
	case "repeat":
		return p.repeat(s)
	case "on":
		return p.steps(p.answering(s))
	case "one_of":
		return p.steps(s.Choices[p.draw.IntN(len(s.Choices))])
	default:
		panic("script: a step without a verb: " + s.Verb)
	}
	return nil
}

// speak reports a text line by line, and each line in pieces if the step says so.
func (p *player) speak(kind driver.FactKind, s *Step) error {
	text := strings.TrimSuffix(p.text(s.Text), "\n")
	for line := range strings.SplitSeq(text, "\n") {
		if s.Delay == 0 && s.Chunk == 0 {
			p.out.Tell(event{Type: kind, Text: line})
			continue
		}
		all := pieces(line, s.Chunk)
		for i, piece := range all {
			more := i < len(all)-1
			p.out.Tell(event{Type: kind, Text: piece, Part: more})
			if !more {
				break
			}
			if err := p.rest(s.Delay); err != nil && !errors.Is(err, errTerminated) {
				return err
			} else if err != nil {
				s = &Step{Chunk: s.Chunk} // the rest without delay; the play stops after this step
			}
		}
	}
	return nil
}

// change writes a file of the workspace and reports it as a tool call.
func (p *player) change(s *Step) error {
	world, name, shown, err := p.place(s.File)
	if err != nil {
		return err
	}
	p.out.Tell(event{Type: driver.ToolCalled, Tool: s.Verb, Text: shown, Args: speech.Args(map[string]string{"file_path": shown})})
	switch s.Verb {
	case "write":
		return world.WriteFile(name, []byte(p.text(s.Content)))
	case "append":
		return world.AppendFile(name, []byte(p.text(s.Content)), false)
	}
	old, err := world.ReadFile(name)
	if err != nil {
		return err
	}
	replace, times := []byte(p.text(s.Replace)), 1
	if s.All {
		times = -1
	}
	if !bytes.Contains(old, replace) {
		return fmt.Errorf("%s does not contain %q", name, clip(string(replace)))
	}
	return world.WriteFile(name, bytes.Replace(old, replace, []byte(p.text(s.With)), times))
}

// place resolves a file name: in the workspace, or in the conversation's output folder. shown is the
// name for display.
func (p *player) place(file string) (world World, name, shown string, err error) {
	rest, inOutputs := strings.CutPrefix(file, outputsPrefix)
	world, name = p.stage.World, p.text(rest)
	shown = name
	if why := forbidden(name); why != "" {
		return nil, "", "", errors.New(why)
	}
	if !inOutputs {
		return world, name, shown, nil
	}
	if p.stage.Outputs == nil {
		return nil, "", "", fmt.Errorf("%s names a conversation's output folder, but this session has none: %s is not set", clip(file), OutputsVariable)
	}
	return p.stage.Outputs, name, filepath.Join(p.stage.Folder, name), nil
}

// run runs a command, with retries, and reports its output.
func (p *player) run(s *Step) error {
	command := p.text(s.Text)
	p.out.Tell(event{Type: driver.ToolCalled, Tool: "run", Text: command, Args: speech.Args(map[string]string{"command": speech.CutText(command)})})
	for try := 1; ; try++ {
		code, err := p.runOnce(s, command)
		if err != nil {
			return err
		}
		if p.stopping {
			return nil // the result does not matter: the command may have been stopped with the session
		}
		if code == 0 {
			return nil
		}
		p.out.Tell(event{Type: driver.Said, Tool: "run", Text: fmt.Sprintf("[exit code %d]", code)})
		if try == s.Tries {
			if s.MayFail {
				return nil
			}
			return fmt.Errorf("exit code %d from %s", code, clip(command))
		}
		if err := p.rest(s.Delay); err != nil {
			return err
		}
	}
}

// runOnce runs a command to its end. Orders are handled meanwhile: cancel ends the command
// immediately, Stop gives it a short time.
func (p *player) runOnce(s *Step, command string) (int, error) {
	ctx, cancel := context.WithTimeout(p.ctx, s.Limit)
	defer cancel()
	out := &printer{out: p.out, tool: "run", quiet: s.Quiet}
	if s.Says {
		out.tool = "" // the output counts as the agent's own words
	}
	done := make(chan struct{})
	var code int
	var err error
	go func() {
		defer close(done)
		code, err = p.stage.World.Run(ctx, command, p.env(), out)
	}()
	waited := p.await(nil, done, 0)
	if errors.Is(waited, errTerminated) {
		grace := time.NewTimer(stopGrace)
		defer grace.Stop()
		select {
		case <-done:
		case <-grace.C:
		case <-p.ctx.Done():
		}
		waited = nil
	}
	expired := ctx.Err()
	cancel()
	<-done
	out.end()
	switch {
	case waited != nil:
		return 0, waited
	case errors.Is(expired, context.DeadlineExceeded):
		return 0, fmt.Errorf("%s did not end within %v", clip(command), s.Limit)
	}
	return code, err
}

// spawn leaves a process running when the session ends, which the shim must end.
func (p *player) spawn(s *Step) error {
	command := p.text(s.Text)
	p.out.Tell(event{Type: driver.ToolCalled, Tool: "spawn", Text: command})
	pid, err := p.stage.World.Spawn(command, s.Mode, s.Holds, p.env())
	if err != nil {
		return err
	}
	p.out.Say(driver.Said, "spawn", fmt.Sprintf("left running: pid %d (%s)", pid, s.Mode))
	return nil
}

// count prints numbered lines as plain text. Each line is added to the ledger and synced after it
// was written, so the ledger never contains a line that was not printed.
func (p *player) count(s *Step) error {
	ledger := p.text(s.File)
	if why := forbidden(ledger); s.File != "" && why != "" {
		return errors.New(why)
	}
	var pause time.Duration
	if s.Rate > 0 {
		pause = time.Duration(float64(time.Second) / s.Rate)
	}
	for i := 1; i <= s.N; i++ {
		line := fmt.Appendf(nil, "%s %d/%d\n", p.part.Session, i, s.N)
		p.out.Print(line)
		if ledger != "" && p.out.Broken() == nil {
			if err := p.stage.World.AppendFile(ledger, line, true); err != nil {
				return err
			}
		}
		if err := p.lookUp(); err != nil {
			return err
		}
		if i < s.N {
			if err := p.rest(pause); err != nil {
				return err
			}
		}
	}
	return nil
}

// hang does nothing until it is stopped; with deaf, only SIGKILL ends it.
func (p *player) hang(s *Step) error {
	if s.Text != "" {
		p.out.Say(driver.Thought, "", p.text(s.Text))
	}
	if s.Deaf {
		<-p.ctx.Done()
		return errGone
	}
	return p.await(nil, nil, 0)
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
	p.out.Tell(event{Type: driver.PermissionAsked, ID: id, Tool: p.text(s.Tool), Text: p.text(s.Text), Options: options, Args: speech.Args(args)})
	answered := func() bool { _, ok := p.answers[id]; return ok }
	if err := p.await(answered, nil, s.Limit); err != nil {
		return err
	}
	answer, ok := p.answers[id]
	switch known := slices.ContainsFunc(options, func(o driver.Option) bool { return o.ID == answer }); {
	case !ok:
		answer = "no answer"
		p.out.Tell(event{Type: driver.PermissionWithdrawn, ID: id})
		p.out.Say(driver.Thought, "", fmt.Sprintf("no answer came within %v", s.Limit))
	case !known: // strict: an answer that was not offered does not allow
		p.out.Tell(event{Type: driver.Faulted, Text: fmt.Sprintf("%s was answered with %q, which was not offered", id, clip(answer))})
		answer = "not offered"
	default:
		p.out.Tell(event{Type: driver.PermissionAnswered, ID: id, Text: answer})
	}
	p.vars[varAnswer] = answer
	if kindOf(answer) == "allow_once" {
		return p.steps(s.Steps)
	}
	return p.steps(s.Else)
}

// kindOf derives the kind of an answer from its first word: allow… allows, everything else does not.
func kindOf(option string) string {
	if strings.HasPrefix(strings.ToLower(option), "allow") {
		return "allow_once"
	}
	return "reject_once"
}

// expectPrompt reads the next prompt; the prompt of the start is the first. If none is queued, it
// reports Listening, after which a sender that waits for each answer sends the next one.
func (p *player) expectPrompt(s *Step) error {
	if err := p.lookUp(); err != nil {
		return err
	}
	if len(p.prompts) == 0 {
		p.out.Tell(event{Type: driver.Listening, Input: p.taken})
	}
	if err := p.await(func() bool { return len(p.prompts) > 0 || p.noMorePrompts }, nil, s.Limit); err != nil {
		return err
	}
	if len(p.prompts) == 0 && p.noMorePrompts {
		return errNoMorePrompts
	}
	if len(p.prompts) == 0 {
		return fmt.Errorf("no prompt came within %v", s.Limit)
	}
	next := p.prompts[0]
	p.vars[varPrompt], p.prompts = next.text, p.prompts[1:]
	if next.steer != "" {
		p.out.Tell(event{Type: driver.TextRead, ID: next.steer, Text: next.text})
	}
	if want := p.text(s.Text); !strings.Contains(p.vars[varPrompt], want) {
		return fmt.Errorf("the prompt %q does not contain %q", clip(p.vars[varPrompt]), clip(want))
	}
	return nil
}

// answering returns the steps for the last prompt: those of the first case that it contains.
func (p *player) answering(s *Step) []Step {
	for i := range s.Cases {
		if strings.Contains(p.vars[varPrompt], p.text(s.Cases[i].Containing)) {
			return s.Cases[i].Steps
		}
	}
	return s.Else
}

func (p *player) repeat(s *Step) error {
	outer := p.vars[varRound]
	defer func() { p.vars[varRound] = outer }()
	for i := range s.N {
		p.vars[varRound] = strconv.Itoa(i + 1)
		if err := p.steps(s.Steps); err != nil {
			return err
		}
		if err := p.lookUp(); err != nil { // if guards skipped every step
			return err
		}
	}
	return nil
}

// alphabet returns n bytes that are easy to compare with the output.
func alphabet(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte(i%26)
	}
	return b
}
