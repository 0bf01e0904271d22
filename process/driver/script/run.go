package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

const (
	killAfter = 2 * time.Second // from SIGTERM to SIGKILL when a command is ended

	// printedBytesMax is how much of one command's output is shown. A command that prints forever must
	// not fill the spool.
	printedBytesMax = 1 << 20
)

// run runs a command to its end and reports its output. A command whose output is the agent's own is a
// part of the agent; any other one is reported as a call of a tool. Orders are handled meanwhile: cancel ends the
// command immediately, Stop gives it a short time.
func (p *player) run(s *Step) error {
	if !s.Says && !s.Raw {
		args := speech.Args(map[string]string{"command": speech.CutText(s.Text)})
		p.out.Tell(driver.Fact{Kind: driver.ToolCalled, Tool: "run", Text: s.Text, Args: args})
	}
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	out := &printer{out: p.out, tool: "run", raw: s.Raw}
	if s.Says {
		out.tool = "" // the output counts as the agent's own words
	}
	done := make(chan struct{})
	var code int
	var err error
	go func() {
		defer close(done)
		code, err = p.shell(ctx, s.Text, out)
	}()
	waited := p.await(nil, done, 0)
	stopping := errors.Is(waited, errTerminated)
	if stopping {
		grace := time.NewTimer(stopGrace)
		defer grace.Stop()
		select {
		case <-done:
		case <-grace.C:
		case <-p.ctx.Done():
		}
	}
	cancel()
	<-done
	out.end()
	switch {
	case stopping:
		return nil // the result does not matter: the command may have been stopped with the session
	case waited != nil:
		return waited
	case err != nil || code == 0:
		return err
	}
	p.out.Tell(driver.Fact{Kind: driver.Said, Tool: "run", Text: fmt.Sprintf("[exit code %d]", code)})
	return fmt.Errorf("exit code %d from %s", code, clip(s.Text))
}

// shell runs a command with sh, in its own process group, with the last prompt as its input.
func (p *player) shell(ctx context.Context, command string, output *printer) (code int, err error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir, cmd.Env, cmd.Stdin = p.stage.Dir, p.env(), strings.NewReader(p.prompt)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killAfter // do not wait longer for background processes that hold the pipe
	err = cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		// End what ignored SIGTERM. The group's leader has ended, so only its members are signaled.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	switch {
	case cmd.ProcessState == nil:
		return -1, fmt.Errorf("run sh: %w", err)
	case ctx.Err() != nil:
		return -1, nil //nolint:nilerr // it was told to end, and ended
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil // as a shell reports it
	}
	return cmd.ProcessState.ExitCode(), nil
}

// printer turns a command's output into facts, line by line. The command's output is written by one
// goroutine at a time.
type printer struct {
	out  *speech.Writer
	tool string
	raw  bool // what is written is the agent's output, as it is

	line   []byte
	length int // length of the line, including what was dropped
	total  int
}

func (p *printer) Write(b []byte) (int, error) {
	if p.raw {
		p.out.Print(b)
		return len(b), nil
	}
	for rest := b; len(rest) > 0; {
		head, tail, ended := bytes.Cut(rest, []byte{'\n'})
		p.length += len(head)
		if room := speech.TextBytesMax - len(p.line); room > 0 {
			p.line = append(p.line, head[:min(room, len(head))]...)
		}
		if !ended {
			break
		}
		p.flush()
		rest = tail
	}
	return len(b), nil
}

// end reports an incomplete last line.
func (p *printer) end() {
	if p.length > 0 {
		p.flush()
	}
}

func (p *printer) flush() {
	text := strings.ToValidUTF8(strings.TrimSuffix(string(p.line), "\r"), string(utf8.RuneError))
	if p.length > len(p.line) {
		text += fmt.Sprintf(" … [cut: the line has %d bytes]", p.length)
	}
	before := p.total
	p.total += len(text) + 1
	p.line, p.length = p.line[:0], 0
	switch {
	case p.total <= printedBytesMax:
		p.out.Tell(driver.Fact{Kind: driver.Said, Tool: p.tool, Text: text})
	case before <= printedBytesMax:
		text = fmt.Sprintf("… [the command prints more than %d bytes; the rest is not shown]", printedBytesMax)
		p.out.Tell(driver.Fact{Kind: driver.Said, Tool: p.tool, Text: text})
	}
}
