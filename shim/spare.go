package shim

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	sparesMax        = 2           // each has as much memory as the shim of a session
	spareWaits       = time.Second // a longer step does not notice how long its start takes
	markBytesMax     = 2*8 + 1 + sessionNameBytesMax
	spareFolderBytes = 1 << 10 // of the folder's name in process lists; the launch has all of it
)

// Spares keeps shims that were started ahead of their sessions, so that a start does not wait until the program is
// loaded. They are made when a start follows another one within spareWaits, as the steps of a run do, and two of them,
// because a short step is over before a shim is loaded. A spare ends if no start takes it within spareWaits, or with the
// process that made it: it reads the end of its socket. It knows no session, and nothing runs below it. The zero value
// is ready to use.
type Spares struct {
	mu   sync.Mutex
	idle []*spare  // the oldest first; at most sparesMax
	last time.Time // of the last start
}

type spare struct {
	exe   string
	conn  *os.File
	gone  <-chan struct{} // closed when its process has ended
	until *time.Timer
}

// take returns the connection of a spare of this program; nil if there is none.
func (s *Spares) take(exe string) *os.File {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.idle) > 0 {
		one := s.idle[0]
		s.idle = s.idle[1:]
		if one.until.Stop(); one.exe == exe && !closed(one.gone) {
			return one.conn
		}
		one.conn.Close()
	}
	return nil
}

// refill makes spares for the starts after this one, if it follows another one. Without them, the next start only takes
// longer, so an error is not reported.
func (s *Spares) refill(exe string) {
	if s == nil || !haveSpares {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.last
	if s.last = time.Now(); s.last.Sub(before) > spareWaits {
		return
	}
	for len(s.idle) < sparesMax {
		conn, gone, err := startShim(exe, strings.Repeat(" ", sessionNameBytesMax), strings.Repeat(" ", spareFolderBytes), strings.Repeat(" ", markBytesMax), nil)
		if err != nil {
			return
		}
		one := &spare{exe: exe, conn: conn, gone: gone}
		one.until = time.AfterFunc(spareWaits, func() { s.end(one) })
		s.idle = append(s.idle, one)
	}
}

func (s *Spares) end(one *spare) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.idle, one); i >= 0 {
		s.idle = slices.Delete(s.idle, i, i+1)
		one.conn.Close()
	}
}

// isSpare reports whether a shim with these arguments was started without a session.
func isSpare(args []string) bool { return strings.Trim(args[0], " ") == "" }

// errSpare is the answer of a spare that cannot take a session. Nothing was started, so another shim can.
var errSpare = errors.New("the spare shim cannot take a session")

// become makes a spare the shim of a session: from here on it has the arguments, the environment and the error output
// that it would have been started with. Other programs find it and the agent's tree by them (see Caller and Strays).
func (k *keeper) become(l *launchSpec) error {
	log, err := openPlain(filepath.Join(l.Folder, logFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	if err == nil {
		err = rewriteSelf(l.Session, l.Folder, l.Mark, log)
		log.Close()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errSpare, err)
	}
	k.folder = l.Folder
	return nil
}

// overBlanks writes text, or as much of it as there is room for, over the blanks with which region begins. The rest of
// them become zero bytes, which end a string.
func overBlanks(region []byte, text string) {
	blanks := len(region) - len(bytes.TrimLeft(region, " "))
	clear(region[copy(region[:blanks], text):blanks])
}
