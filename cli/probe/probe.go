package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// A probe starts an agent program, greets it and ends it. It does so in a process of its own, so
// that all processes of the program end with it: if the kernel allows, that process has its own PID
// namespace and a network without connections.

const (
	probeTimeout  = 40 * time.Second // a program that takes longer to start needs a check by hand
	probeBytesMax = 1 << 20          // of the answer; much more than it needs
)

// Request is the input of the probing process, on its standard input. The agent's environment is
// that process's environment; the input has only the names.
type Request struct {
	Driver    string   `json:"driver"`
	Name      string   `json:"name"`
	Command   []string `json:"command"`
	Dir       string   `json:"dir"`
	Model     string   `json:"model,omitempty"`
	Mode      string   `json:"mode,omitempty"`
	Variables []string `json:"variables,omitempty"` // names of those that the agent's configuration sets; their values are in the environment
}

// Reply is the answer of the probing process.
type Reply struct {
	Found driver.Probed `json:"found"`
	Fault string        `json:"fault,omitempty"`
}

// errNotApart says that the kernel provided no usable network namespace.
var errNotApart = errors.New("no network of its own")

const exitNotApart = 9 // the probing process exits with this, and is started again without a network of its own

// Can reports whether this build has a driver of this name, and it can examine programs.
func Can(name string) bool {
	d := cli.Drivers()[name]
	return d != nil && d.Capabilities(driver.Agent{}, driver.Work).Probes
}

// Here reads what to probe, probes it and prints the answer.
func Here(ctx context.Context, a *cli.App, apart bool) error {
	if apart {
		if err := raiseLoopback(); err != nil {
			return &cli.Coded{Code: exitNotApart, Err: fmt.Errorf("%w: %w", errNotApart, err)}
		}
	}
	var asked Request
	if err := json.NewDecoder(io.LimitReader(a.In, probeBytesMax)).Decode(&asked); err != nil {
		return fmt.Errorf("read what to probe: %w", err)
	}
	if !Can(asked.Driver) {
		return fmt.Errorf("the driver %s cannot probe programs", asked.Driver)
	}
	var reply Reply
	var err error
	reply.Found, err = cli.Drivers()[asked.Driver].Probe(ctx, driver.Agent{
		Name: asked.Name, Command: asked.Command, Workspace: asked.Dir, Env: environmentOf(asked.Variables), Model: asked.Model, Mode: asked.Mode,
	})
	if err != nil {
		reply.Fault = err.Error()
	}
	return json.NewEncoder(a.Out).Encode(reply)
}

// environmentOf returns the variables of this process with these names, as K=V.
func environmentOf(names []string) []string {
	var env []string
	for _, name := range names {
		env = append(env, name+"="+os.Getenv(name))
	}
	return env
}

type freshKey struct{}

// fresh reports whether programs are to be asked again although their answers are known.
func fresh(ctx context.Context) bool { return ctx.Value(freshKey{}) != nil }

// Fresh makes Ask ask each program again.
func Fresh(ctx context.Context) context.Context { return context.WithValue(ctx, freshKey{}, true) }

// Ask examines a program in a process of its own, unless its answer is known from an earlier call. env is added to the environment.
func Ask(ctx context.Context, asked Request, env []string) (Reply, error) {
	file := rememberedAnswers().file(asked, env)
	if reply, ok := recall(file); ok && !fresh(ctx) {
		return reply, nil
	}
	reply, err := probeOnce(ctx, asked, env, true)
	if errors.Is(err, errNotApart) {
		reply, err = probeOnce(ctx, asked, env, false)
	}
	if err == nil {
		remember(file, reply)
	}
	return reply, err
}

func probeOnce(ctx context.Context, asked Request, env []string, apart bool) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return Reply{}, fmt.Errorf("find the fairlead program: %w", err)
	}
	dir, err := os.MkdirTemp("", "fairlead-probe-") // files that the program writes into its working folder are thrown away
	if err != nil {
		return Reply{}, fmt.Errorf("make room for a probe: %w", err)
	}
	defer os.RemoveAll(dir)
	if asked.Dir == "" {
		asked.Dir = dir
	}
	env = append(slices.Clip(quiet), env...)
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		asked.Variables = append(asked.Variables, name)
	}
	told, err := json.Marshal(asked)
	if err != nil {
		return Reply{}, fmt.Errorf("write what to probe: %w", err)
	}
	words := []string{"fairlead", "doctor", "--probe"}
	if apart {
		words = append(words, "--apart")
	}
	out, errs := file.Capped{Max: probeBytesMax}, file.Capped{Max: probeBytesMax}
	cmd := &exec.Cmd{
		Path: self, Args: words, Dir: dir, Env: append(os.Environ(), env...),
		Stdin: bytes.NewReader(told), Stdout: &out, Stderr: &errs, SysProcAttr: probeAttr(apart), WaitDelay: time.Second,
	}
	if cmd.SysProcAttr == nil {
		return Reply{}, errNotApart
	}
	if err := cmd.Start(); err != nil {
		if apart {
			return Reply{}, fmt.Errorf("%w: %w", errNotApart, err)
		}
		return Reply{}, fmt.Errorf("start a probe: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer stop()
	err = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // processes of the program that are left in the group; usually none
	var reply Reply
	switch {
	case ctx.Err() != nil:
		return Reply{}, fmt.Errorf("it did not answer within %s", probeTimeout)
	case apart && cmd.ProcessState.ExitCode() == exitNotApart:
		return Reply{}, errNotApart
	case err != nil:
		return Reply{}, fmt.Errorf("the probe ended with %w: %s", err, bytes.TrimSpace(errs.Bytes()))
	}
	if err := json.Unmarshal(out.Bytes(), &reply); err != nil {
		return Reply{}, fmt.Errorf("the probe's answer is invalid: %w", err)
	}
	return reply, nil
}

// quiet are variables that turn off what programs do on their own at start.
var quiet = []string{
	"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	"NO_UPDATE_NOTIFIER=1", "DO_NOT_TRACK=1",
}
