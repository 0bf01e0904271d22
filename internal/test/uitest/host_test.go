package uitest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// localHost is an [dispatch.Host] that runs agents as children of the test, without shims: a
// session does not outlive the test, and its output stays in memory.
type localHost struct {
	mu       sync.Mutex
	sessions map[string]*process
}

func newLocalHost() *localHost { return &localHost{sessions: map[string]*process{}} }

func (h *localHost) Start(_ context.Context, session string, _ uint64, launch spawn.Launch, _ time.Duration) (sessionhost.Process, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sessions[session] != nil {
		return nil, &spawn.AlreadyStarted{Session: session}
	}
	p := &process{done: make(chan struct{}), grew: make(chan struct{}), started: time.Now(), input: int64(len(launch.Input))}
	if launch.Argv[len(launch.Argv)-1] == instantWord {
		p.output, p.exit.At = instantReport(launch.Env), time.Now()
		close(p.done)
		h.sessions[session] = p
		return p, nil
	}
	cmd := exec.Command(launch.Argv[0], launch.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = launch.Dir, launch.Env, p, p
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that End reaches children
	cmd.WaitDelay = time.Second                           // a child that keeps the output open
	if launch.KeepStdin {
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return nil, fmt.Errorf("open the input of %s: %w", session, err)
		}
		p.stdin = stdin
	} else {
		cmd.Stdin = bytes.NewReader(launch.Input)
	}
	if err := cmd.Start(); err != nil {
		return nil, &spawn.CannotStart{Why: err.Error()}
	}
	p.pid = cmd.Process.Pid
	h.sessions[session] = p
	if p.stdin != nil {
		if _, err := p.stdin.Write(launch.Input); err != nil {
			p.refused = err
		}
	}
	go p.wait(cmd)
	return p, nil
}

// instantWord at the end of a step's command lets the step complete at once, without a process. It
// is for runs with more steps than a test has time to start processes for.
const instantWord = "instant"

// instantReport is the output of a step whose command ends with instantWord.
func instantReport(env []string) []byte {
	of := map[string]string{}
	for _, word := range env {
		name, value, _ := strings.Cut(word, "=")
		of[name] = value
	}
	now := time.Now().UTC().Format(time.RFC3339)
	return fmt.Appendf(nil,
		"<<<RUN_REPORT_JSON\n{\"schema\":\"agent_run_report_v1\",\"run_id\":%q,\"step_id\":%q,\"agent\":%q,\"status\":\"COMPLETED\",\"started_at\":%q,\"ended_at\":%q,\"artifacts\":[],\"metrics\":{},\"logs\":[]}\nRUN_REPORT_JSON>>>\n",
		of["RUN_ID"], of["STEP_ID"], cmp.Or(of["AGENT_ID"], "script"), now, now)
}

func (h *localHost) Adopt(context.Context, string, uint64) (sessionhost.Process, sessionhost.Found, error) {
	return nil, sessionhost.NeverStarted, nil
}

func (h *localHost) Output(ctx context.Context, session string, offset int64) (io.ReadCloser, error) {
	h.mu.Lock()
	p := h.sessions[session]
	h.mu.Unlock()
	if p == nil {
		return nil, fmt.Errorf("open the output of %s: %w", session, fs.ErrNotExist)
	}
	return p.Output(ctx, offset)
}

// outputBytes is the length of a session's output now.
func (h *localHost) outputBytes(session string) (int64, error) {
	h.mu.Lock()
	p := h.sessions[session]
	h.mu.Unlock()
	if p == nil {
		return 0, fs.ErrNotExist
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(len(p.output)), nil
}

func (h *localHost) Sweep(context.Context) ([]string, error) { return nil, nil }

func (h *localHost) Orphans(context.Context, func(string) bool) ([]sessionhost.Orphan, error) {
	return nil, nil
}

func (h *localHost) PutAside(string) (string, error) { return "", nil }

// stop ends every process that still runs. SIGTERM comes first, because a scripted agent then ends the
// commands that it has started; these have process groups of their own.
func (h *localHost) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.sessions {
		_ = p.End(context.Background(), stopGrace)
		<-p.done
	}
}

// stopGrace is how long a process may take to end after SIGTERM.
const stopGrace = 5 * time.Second

// process is one session of a localHost.
type process struct {
	pid     int
	started time.Time
	done    chan struct{}
	refused error // the first input could not be written
	stdin   io.WriteCloser

	mu       sync.Mutex
	output   []byte
	lastByte time.Time
	grew     chan struct{} // closed and replaced when there is more output
	exit     session.Exit
	input    int64
	label    string
}

// Write takes what the process writes.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.output, p.lastByte = append(p.output, b...), time.Now()
	close(p.grew)
	p.grew = make(chan struct{})
	return len(b), nil
}

func (p *process) wait(cmd *exec.Cmd) {
	_ = cmd.Wait() // the exit code has the same information as Wait's error
	exit := session.Exit{Code: cmd.ProcessState.ExitCode(), At: time.Now()}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit.Signal = "SIG" + status.Signal().String()
	}
	p.mu.Lock()
	p.exit = exit
	p.mu.Unlock()
	close(p.done)
}

func (p *process) signal(s syscall.Signal) {
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(-p.pid, s) // the group may have ended already
	}
}

func (p *process) PID() int              { return p.pid }
func (p *process) Done() <-chan struct{} { return p.done }

func (p *process) Ended(context.Context) (session.Exit, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	exit := p.exit
	exit.SpoolBytes = int64(len(p.output))
	return exit, nil
}

func (p *process) End(ctx context.Context, grace time.Duration) error {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-ctx.Done():
	case <-time.After(grace):
		p.signal(syscall.SIGKILL)
	}
	return nil
}

func (p *process) Ack(context.Context) error { return nil }
func (p *process) Close() error              { return nil }

func (p *process) Evidence(context.Context) (sessionhost.Proof, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return sessionhost.Proof{
		PID: p.pid, StartedAt: p.started, LastByteAt: p.lastByte, Bytes: int64(len(p.output)),
		Holds: []string{"a child of the test"},
	}, nil
}

func (p *process) Send(_ context.Context, input []byte) error {
	if p.stdin == nil {
		return errors.New("the input of this process is closed")
	}
	if p.refused != nil {
		return p.refused
	}
	n, err := p.stdin.Write(input)
	p.mu.Lock()
	p.input += int64(n)
	p.mu.Unlock()
	return err
}

// SendAs and Input make it an engine.Typist.
func (p *process) SendAs(ctx context.Context, label string, input []byte) error {
	if err := p.Send(ctx, input); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.label = label
	return nil
}

func (p *process) Input() (int64, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.input, p.label
}

func (p *process) CloseInput(context.Context) error {
	if p.stdin == nil {
		return nil
	}
	if err := p.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

func (p *process) Output(ctx context.Context, offset int64) (io.ReadCloser, error) {
	return &outputReader{ctx: ctx, p: p, at: offset, closed: make(chan struct{})}, nil
}

// outputReader reads from an offset on and waits for more until the process has ended.
type outputReader struct {
	ctx    context.Context
	p      *process
	at     int64
	once   sync.Once
	closed chan struct{}
}

func (r *outputReader) Read(b []byte) (int, error) {
	for {
		ended := false
		select {
		case <-r.p.done:
			ended = true
		default:
		}
		r.p.mu.Lock()
		n := 0
		if r.at < int64(len(r.p.output)) {
			n = copy(b, r.p.output[r.at:])
		}
		grew := r.p.grew
		r.p.mu.Unlock()
		r.at += int64(n)
		if n > 0 {
			return n, nil
		}
		if ended {
			return 0, io.EOF
		}
		select {
		case <-grew:
		case <-r.p.done:
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		case <-r.closed:
			return 0, fs.ErrClosed
		}
	}
}

func (r *outputReader) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}
