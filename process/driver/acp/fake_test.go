package acp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/test/leaktest"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

func TestMain(m *testing.M) {
	adapter.Intercept(Driver{})
	if len(os.Args) > 1 && os.Args[1] == peerVerb {
		os.Exit(peerMain(os.Args[2:]))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise every program here would wait a second at its end
	os.Exit(leaktest.Main(m))
}

// fake is a program in memory. Its input and output are pipes, and it ends when its script ends.
type fake struct {
	in        *bufio.Reader
	out       io.Writer
	session   string            // of its updates; empty: s1
	onMessage func(line []byte) // called with each message of the driver; may be nil

	stdin          *io.PipeWriter
	stdout, stderr *io.PipeReader
	exit           session.Exit
	ended, killed  chan struct{}
	kill           sync.Once
	env            []string
}

// received is one message from the driver.
type received struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

// stopped ends a script early after its pipes were closed.
type stopped struct{}

// startFake starts a script as a program.
func startFake(script func(*fake)) func(adapter.Command) (adapter.Process, error) {
	return func(c adapter.Command) (adapter.Process, error) {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		errR, errW := io.Pipe()
		f := &fake{
			in: bufio.NewReader(inR), out: outW, stdin: inW, stdout: outR, stderr: errR,
			ended: make(chan struct{}), killed: make(chan struct{}), env: c.Env,
		}
		go func() {
			<-f.killed
			inR.Close()
			outW.Close()
		}()
		go func() {
			defer close(f.ended)
			defer errW.Close()
			defer f.end()
			defer func() {
				if v := recover(); v != nil && v != (stopped{}) {
					panic(v)
				}
			}()
			script(f)
		}()
		return f, nil
	}
}

func (f *fake) end()                  { f.kill.Do(func() { close(f.killed) }) }
func (f *fake) Stdin() io.WriteCloser { return f.stdin }
func (f *fake) Stdout() io.ReadCloser { return f.stdout }
func (f *fake) Stderr() io.ReadCloser { return f.stderr }

func (f *fake) Wait() session.Exit {
	<-f.ended
	return f.exit
}

func (f *fake) Signal(s syscall.Signal) {
	f.exit = session.Exit{Code: -1, Signal: s.String()}
	f.end()
}

// next reads the next message from the driver.
func (f *fake) next() received {
	line, err := f.in.ReadBytes('\n')
	if err != nil {
		panic(stopped{})
	}
	if f.onMessage != nil {
		f.onMessage(line)
	}
	var r received
	if err := json.Unmarshal(line, &r); err != nil {
		panic(fmt.Sprintf("%v: %s", err, line))
	}
	return r
}

// expect reads messages until one with this method.
func (f *fake) expect(method string) received {
	for {
		if r := f.next(); r.Method == method {
			return r
		}
	}
}

// reply reads messages until the response to a request of the script.
func (f *fake) reply(id string) received {
	for {
		if r := f.next(); r.Method == "" && string(r.ID) == id {
			return r
		}
	}
}

func (f *fake) print(format string, args ...any) {
	if _, err := fmt.Fprintf(f.out, format+"\n", args...); err != nil {
		panic(stopped{})
	}
}

func (f *fake) result(of received, result string) {
	f.print(`{"jsonrpc":"2.0","id":%s,"result":%s}`, of.ID, result)
}

func (f *fake) update(update string) {
	f.print(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":%s}}`, cmp.Or(f.session, "s1"), update)
}

func (f *fake) says(text string) {
	b, _ := json.Marshal(text)
	f.update(fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%s}}`, b))
}

// greeted answers initialize and opens a conversation.
func (f *fake) greeted() {
	f.result(f.expect("initialize"), `{"protocolVersion":1,"agentCapabilities":{},"agentInfo":{"name":"fake","version":"7"}}`)
	f.result(f.expect("session/new"), `{"sessionId":"s1"}`)
}

// asks requests permission with the given ID and call, and two options.
func (f *fake) asks(id, call string) {
	f.print(`{"jsonrpc":"2.0","id":%s,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":%s,`+
		`"options":[{"optionId":"yes","name":"Allow","kind":"allow_once"},{"optionId":"no","name":"Reject","kind":"reject_once"}]}}`, id,
		call)
}

// scene is one session and its events.
type scene struct {
	t       *testing.T
	part    adapter.Part
	env     []string
	driver  Driver
	stop    chan struct{}
	onEvent func(s *scene, e driver.Fact) // called with each event, in the goroutine that reports it

	orders chan speech.Order
	mu     sync.Mutex
	raw    bytes.Buffer
	events []driver.Fact
	end    driver.Stop
}

func newScene(t *testing.T, what driver.Kind, prompt string) *scene {
	s := &scene{
		t: t, part: adapter.Part{
			Kind: "acp", Name: "coder", Session: "coder-1", What: what, Attempt: 1, Command: []string{"/bin/fake"},
			Dir: "/work/repo",
		},
		orders: make(chan speech.Order, 64), stop: make(chan struct{}),
	}
	s.order(speech.Order{Type: speech.OrderStart, Text: prompt})
	return s
}

func (s *scene) order(o speech.Order) {
	o.End = int64(len(o.Encode()))
	s.orders <- o
}

// Write receives the adapter's events; several, if their pieces were gathered.
func (s *scene) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw.Write(b)
	for line := range bytes.Lines(b) {
		var e driver.Fact
		if err := json.Unmarshal(line, &e); err != nil {
			s.t.Errorf("invalid event: %v: %s", err, line)
		}
		s.events = append(s.events, e)
		if s.onEvent != nil {
			s.onEvent(s, e)
		}
	}
	return len(b), nil
}

// play runs a scene with a script to its end.
func (s *scene) play(script func(*fake)) *scene {
	s.t.Helper()
	return s.perform(startFake(script))
}

func (s *scene) perform(start func(adapter.Command) (adapter.Process, error)) *scene {
	s.t.Helper()
	stage := adapter.NewStage(speech.NewWriter(s), s.part.Dir, s.env)
	stage.Orders, stage.Stop, stage.Starts = s.orders, s.stop, start
	stage.Out.Hide(s.part.MCP.Token)
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Hour) // time is virtual
	defer cancel()
	s.end = adapter.Perform(ctx, s.driver, s.part, stage)
	return s
}

// of returns the events of a kind.
func (s *scene) of(kind driver.FactKind) (all []driver.Fact) {
	for _, e := range s.events {
		if e.Kind == kind {
			all = append(all, e)
		}
	}
	return all
}

// text returns the agent's own text in all events of a kind.
func (s *scene) text(kind driver.FactKind) string {
	var b strings.Builder
	for _, e := range s.of(kind) {
		if e.Tool != "" {
			continue
		}
		b.WriteString(e.Text)
		if !e.Part {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// kinds lists the kinds of all events, in order.
func (s *scene) kinds() string {
	var all []string
	for _, e := range s.events {
		all = append(all, string(e.Kind))
	}
	return strings.Join(all, " ")
}

func (s *scene) ended(ok bool, reason, detail string) {
	s.t.Helper()
	if s.end.OK != ok || s.end.Reason != reason || !strings.Contains(s.end.Detail, detail) {
		s.t.Errorf("ended with %+v, want OK %t, %s, %q; events: %s", s.end, ok, reason, detail, clip(s.raw.String(), 4<<10))
	}
}
