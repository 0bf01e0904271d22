package proxy

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/internal/boundedlog"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
	"github.com/fairlead-dev/fairlead/process/shim"
)

const (
	helloPatience = 5 * time.Second // a caller says hello at once
	callersMax    = 1000            // connections of shims and daemons: more than sessions that a machine can run
	filesSpare    = 200             // descriptors for the callers, logs and look-ups
	filesEach     = 6               // descriptors of a connection: two sockets, and two pipes while the kernel moves bytes
)

// server is the proxy.
type server struct {
	outside outside
	log     *boundedlog.Log
	events  *events
	room    chan struct{} // one token for each connection of all sessions

	mu       sync.Mutex
	sessions map[string]*session
	watchers map[*wire.Conn]bool
	callers  int
	idle     *time.Timer // fires when nothing has needed the proxy for idleFor; nil: never
	idleFor  time.Duration
}

func newServer(o outside, log *boundedlog.Log) *server {
	s := &server{
		outside: o, log: log, room: make(chan struct{}, connectionsOf(filesLimit())),
		sessions: map[string]*session{}, watchers: map[*wire.Conn]bool{},
	}
	s.events = newEvents(s.watched, s.tell)
	return s
}

func filesLimit() uint64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return limit.Cur // the runtime has raised it to the hard limit
}

// connectionsOf is how many connections of sessions fit into a limit of open files.
func connectionsOf(files uint64) int {
	const most = 20_000 // 20 KB of memory each
	return int(min(max(files, filesSpare+16*filesEach)-filesSpare, most*filesEach)) / filesEach
}

// serve accepts shims and daemons until the listener is closed.
func (s *server) serve(l net.Listener) error {
	for {
		c, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil:
			s.log.Print("accept: %v", err)
			time.Sleep(acceptPause)
			continue
		}
		u, ok := c.(*net.UnixConn)
		if !ok || !s.enter() {
			c.Close()
			continue
		}
		go func() {
			defer s.leave()
			defer u.Close()
			if err := s.greet(u); err != nil {
				s.log.Print("%v", err)
			}
		}()
	}
}

// endIdle calls stop when there was no caller for a while.
func (s *server) endIdle(after time.Duration, stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idleFor = after
	s.idle = time.AfterFunc(after, func() {
		s.mu.Lock()
		needed := s.callers > 0 // a caller came at the same moment
		s.mu.Unlock()
		if !needed {
			stop()
		}
	})
}

func (s *server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.callers >= callersMax {
		return false
	}
	s.callers++
	if s.idle != nil {
		s.idle.Stop()
	}
	return true
}

func (s *server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.callers--; s.callers == 0 && s.idle != nil {
		s.idle.Reset(s.idleFor)
	}
}

// greet reads a caller's first message and serves it.
func (s *server) greet(u *net.UnixConn) error {
	from := shim.Outside(u) // before anything is read: a PID can be reused later
	var inside *shim.RunsInside
	c := wire.NewConn(u)
	_ = c.SetReadDeadline(time.Now().Add(helloPatience))
	m, files, err := c.Receive()
	_ = c.SetReadDeadline(time.Time{})
	closeAll(files)
	switch {
	case err != nil:
		return fmt.Errorf("a caller said no hello: %w", err)
	case m.Hello == nil:
		err = errors.New("the first message is no hello")
	case m.Hello.Version != wire.Version:
		err = fmt.Errorf("proxy %d is of another version of Fairlead (%d) than the caller (%d); end its sessions, and it ends 10 s later",
			os.Getpid(), wire.Version, m.Hello.Version)
	case from != nil && !(errors.As(from, &inside) && m.Hello.Role == wire.RoleSession):
		err = from
	case m.Hello.Role != wire.RoleSession && m.Hello.Role != wire.RoleWatcher:
		err = fmt.Errorf("there is no role %q", m.Hello.Role)
	}
	if err != nil {
		return refuse(c, 0, err)
	}
	if err := c.Send(wire.Message{Hello: &wire.Hello{Version: wire.Version, PID: os.Getpid()}}); err != nil {
		return err
	}
	if m.Hello.Role == wire.RoleWatcher {
		return s.watch(c)
	}
	return s.attend(c, inside)
}

// refuse sends a refusal, and returns it for the log.
func refuse(c *wire.Conn, id int, why error) error {
	return errors.Join(why, c.Send(wire.Message{Refused: &wire.Refused{ID: id, Text: why.Error()}}))
}

// attend serves a session until the connection of its shim ends. A step of a task that runs in a session, without a view of its own, makes
// views for its commands: it registers itself, and nothing else. A program whose network is held cannot give itself rules in this way.
func (s *server) attend(c *wire.Conn, inside *shim.RunsInside) error {
	_ = c.SetReadDeadline(time.Now().Add(helloPatience))
	m, files, err := c.Receive()
	_ = c.SetReadDeadline(time.Time{})
	switch {
	case err != nil:
		return fmt.Errorf("no session was registered: %w", err)
	case m.Register == nil:
		closeAll(files)
		return refuse(c, 0, errors.New("the first message of a session is no registration"))
	case inside != nil && (m.Register.Session != inside.Session || inside.Held):
		closeAll(files)
		return refuse(c, 0, fmt.Errorf("register %s: %w", shown(m.Register.Session), inside))
	}
	one, notes, err := s.newSession(c, m.Register, files)
	if err != nil {
		return refuse(c, 0, fmt.Errorf("register %s: %w", shown(m.Register.Session), err))
	}
	s.mu.Lock()
	before := s.sessions[one.name]
	s.sessions[one.name] = one
	s.mu.Unlock()
	if before != nil {
		before.close() // its shim has lost that connection
	}
	s.log.Print("session %s", one.name)
	registered := wire.Message{Registered: &wire.Registered{Session: one.name, Agent: one.agent, Rules: one.first, Notes: notes}}
	err = c.Send(registered)
	s.tell(registered)
	for err == nil { // nothing more is expected: it waits for the end
		_, files, err = c.Receive()
		closeAll(files)
	}
	s.mu.Lock()
	if s.sessions[one.name] == one {
		delete(s.sessions, one.name)
	}
	s.mu.Unlock()
	one.close()
	s.log.Print("session %s is over", one.name)
	return nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// watch serves a daemon until its connection ends.
func (s *server) watch(c *wire.Conn) error {
	s.mu.Lock()
	s.watchers[c] = true
	sessions := make([]*session, 0, len(s.sessions))
	for _, one := range s.sessions {
		sessions = append(sessions, one)
	}
	s.mu.Unlock()
	defer s.forget(c)
	for _, one := range sessions {
		if err := c.Send(wire.Message{Registered: &wire.Registered{Session: one.name, Agent: one.agent, Rules: one.first}}); err != nil {
			return nil //nolint:nilerr // it has gone
		}
	}
	s.events.wake()
	for {
		m, files, err := c.Receive()
		closeAll(files)
		if err != nil {
			return nil //nolint:nilerr // it has gone
		}
		switch {
		case m.Rules != nil:
			if one := s.session(m.Rules.Session); one != nil {
				one.setRules(m.Rules.Rules, m.Rules.Keep)
			}
		case m.Open != nil:
			opened, err := s.open(*m.Open)
			if err != nil {
				err = c.Send(wire.Message{Refused: &wire.Refused{ID: m.Open.ID, Text: err.Error()}})
			} else {
				err = c.Send(wire.Message{Opened: opened})
			}
			if err != nil {
				return nil //nolint:nilerr // it has gone
			}
		default:
			return refuse(c, 0, errors.New("a watcher sends rules, and asks for ports"))
		}
	}
}

func (s *server) forget(c *wire.Conn) {
	s.mu.Lock()
	delete(s.watchers, c)
	s.mu.Unlock()
}

func (s *server) session(name string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[name]
}

// watched reports whether a daemon listens.
func (s *server) watched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watchers) > 0
}

// tell sends a message to all watchers, and reports whether one got it. A watcher that does not read is let go.
func (s *server) tell(m wire.Message) (told bool) {
	s.mu.Lock()
	watchers := make([]*wire.Conn, 0, len(s.watchers))
	for w := range s.watchers {
		watchers = append(watchers, w)
	}
	s.mu.Unlock()
	for _, w := range watchers {
		if err := w.Send(m); err != nil {
			s.forget(w)
			_ = w.Close()
			continue
		}
		told = true
	}
	return told
}

func (s *server) open(o wire.Open) (*wire.Opened, error) {
	one := s.session(o.Session)
	if one == nil {
		return nil, fmt.Errorf("session %s has no network of its own, or has ended; its ports are this machine's", shown(o.Session))
	}
	return one.open(o)
}

// acceptPause is how long a listener waits after an error such as too many open files.
const acceptPause = 100 * time.Millisecond
