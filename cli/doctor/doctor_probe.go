package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/driver"
)

// A probe starts a program that somebody else wrote, greets it and ends it. It does so in a process
// of its own, so that all of the program ends with it: where the kernel lets us, that process has
// its own process numbers, and a network that leads nowhere.

const (
	probeTimeout  = 40 * time.Second // a program that loads for longer is one to look at by hand
	probeBytesMax = 1 << 20          // of what is found; far more than there is to say
)

// probeWish is what the process that probes is told on its standard input. The agent's environment
// is that process's own, and stands nowhere else.
type probeWish struct {
	Driver  string   `json:"driver"`
	Name    string   `json:"name"`
	Command []string `json:"command"`
	Dir     string   `json:"dir"`
	Model   string   `json:"model,omitempty"`
	Mode    string   `json:"mode,omitempty"`
}

// probeReply is what it says.
type probeReply struct {
	Found driver.Probed `json:"found"`
	Fault string        `json:"fault,omitempty"`
}

// errNotApart says that the kernel made a network of its own that cannot be used.
var errNotApart = errors.New("no network of its own")

const exitNotApart = 9 // the process that probes says so, and is started again without one

// probes reports whether this build has a driver of this name, and it can examine programs.
func probes(name string) bool {
	d := cli.Drivers()[name]
	return d != nil && d.Capabilities(driver.Agent{}, driver.Work).Probes
}

// ProbeHere reads what to probe, probes it and says what was found.
func ProbeHere(ctx context.Context, a *cli.App, apart bool) error {
	if apart {
		if err := raiseLoopback(); err != nil {
			return &cli.Coded{Code: exitNotApart, Err: fmt.Errorf("%w: %w", errNotApart, err)}
		}
	}
	var wish probeWish
	if err := json.NewDecoder(io.LimitReader(a.In, probeBytesMax)).Decode(&wish); err != nil {
		return fmt.Errorf("read what to probe: %w", err)
	}
	if !probes(wish.Driver) {
		return fmt.Errorf("the driver %s probes nothing", wish.Driver)
	}
	var reply probeReply
	var err error
	reply.Found, err = cli.Drivers()[wish.Driver].Probe(ctx, driver.Agent{Name: wish.Name, Command: wish.Command, Workspace: wish.Dir, Model: wish.Model, Mode: wish.Mode})
	if err != nil {
		reply.Fault = err.Error()
	}
	return json.NewEncoder(a.Out).Encode(reply)
}

// probe looks at a program in a process of its own. env is added to our own environment.
func probe(ctx context.Context, wish probeWish, env []string) (probeReply, error) {
	reply, err := probeOnce(ctx, wish, env, true)
	if errors.Is(err, errNotApart) {
		return probeOnce(ctx, wish, env, false)
	}
	return reply, err
}

func probeOnce(ctx context.Context, wish probeWish, env []string, apart bool) (probeReply, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return probeReply{}, fmt.Errorf("find our own program: %w", err)
	}
	dir, err := os.MkdirTemp("", "fairlead-probe-") // what the program writes where it stands is thrown away
	if err != nil {
		return probeReply{}, fmt.Errorf("make room for a probe: %w", err)
	}
	defer os.RemoveAll(dir)
	if wish.Dir == "" {
		wish.Dir = dir
	}
	told, err := json.Marshal(wish)
	if err != nil {
		return probeReply{}, fmt.Errorf("write what to probe: %w", err)
	}
	words := []string{"fairlead", "doctor", "--probe"}
	if apart {
		words = append(words, "--apart")
	}
	var out, errs probeSaid
	cmd := &exec.Cmd{
		Path: self, Args: words, Dir: dir, Env: append(append(os.Environ(), quiet...), env...),
		Stdin: bytes.NewReader(told), Stdout: &out, Stderr: &errs, SysProcAttr: probeAttr(apart), WaitDelay: time.Second,
	}
	if cmd.SysProcAttr == nil {
		return probeReply{}, errNotApart
	}
	if err := cmd.Start(); err != nil {
		if apart {
			return probeReply{}, fmt.Errorf("%w: %w", errNotApart, err)
		}
		return probeReply{}, fmt.Errorf("start a probe: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer stop()
	err = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what the program has left in our group; usually nothing
	var reply probeReply
	switch {
	case ctx.Err() != nil:
		return probeReply{}, fmt.Errorf("it did not answer within %s", probeTimeout)
	case apart && cmd.ProcessState.ExitCode() == exitNotApart:
		return probeReply{}, errNotApart
	case err != nil:
		return probeReply{}, fmt.Errorf("the probe ended with %w: %s", err, bytes.TrimSpace(errs.Bytes()))
	}
	if err := json.Unmarshal(out.Bytes(), &reply); err != nil {
		return probeReply{}, fmt.Errorf("the probe said something else than what it found: %w", err)
	}
	return reply, nil
}

// quiet are variables by which programs leave out what they do on their own when they start.
var quiet = []string{
	"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	"NO_UPDATE_NOTIFIER=1", "DO_NOT_TRACK=1",
}

// probeSaid keeps the beginning of what a process says.
type probeSaid struct{ bytes.Buffer }

func (s *probeSaid) Write(p []byte) (int, error) {
	s.Buffer.Write(p[:min(len(p), max(0, probeBytesMax-s.Len()))])
	return len(p), nil
}
