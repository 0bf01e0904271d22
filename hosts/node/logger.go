package node

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"
)

const (
	foldFor = time.Minute // one message of a kind in this time: a connection that breaks and comes back gives several each second
	kindMax = 200         // bytes of a message that make its kind
	kinds   = 256         // that are remembered: the server has some hundred messages, and most never come
	textMax = 1000        // bytes of a message; those of the server are shorter
)

// sent finds in a message the text that another program has sent, which may be a secret: a name or key that was refused, or a line that
// cannot be read. It is not logged.
var sent = regexp.MustCompile(`(?s)(authentication error - |proto='|\(snip: | - process[A-Z][^:]*: ).*`)

// expected are messages that a sound team has, by how they begin, and why they are no fault. They are logged for debugging only.
var expected = []string{
	"Error trying to connect to route",                         // another engine host is away, or starts: `fairlead hosts` says so
	"Waiting for routing to be established",                    // likewise
	"JetStream has not established contact with a meta leader", // most engine hosts are away, or start: what waits for them says so
	`Clients that are not using "TLS Handshake First"`,         // no other program connects
	"Metalayer blocking snapshot",                              // how long a snapshot at the start or at the end took
}

// logger passes the server's warnings and errors on. One that comes again within a minute is for debugging only, and is counted. A fatal
// one does not end this process: it is kept for start, and an error later.
type logger struct {
	log *slog.Logger
	now func() time.Time // nil: time.Now

	mu   sync.Mutex
	said map[string]*folded // by kind
	last error
	runs bool // the server has started
}

// folded is a kind of message that was logged.
type folded struct {
	at   time.Time
	more int // messages of this kind that were not logged since
}

func (l *logger) Noticef(string, ...any)       {}
func (l *logger) Debugf(string, ...any)        {}
func (l *logger) Tracef(string, ...any)        {}
func (l *logger) Warnf(form string, v ...any)  { l.pass(slog.LevelWarn, fmt.Sprintf(form, v...)) }
func (l *logger) Errorf(form string, v ...any) { l.pass(slog.LevelError, fmt.Sprintf(form, v...)) }

func (l *logger) pass(level slog.Level, text string) {
	text = sent.ReplaceAllString(text, "${1}[not shown]")
	text = text[:min(len(text), textMax)]
	again, first := l.fold(text)
	if !first {
		level = slog.LevelDebug
	}
	var more []any
	if again > 0 {
		more = []any{"again", again}
	}
	l.log.Log(context.Background(), level, "the NATS server of this host: "+text, more...)
}

// fold reports whether a message is to be logged, and how many of its kind were not since the last one that was.
func (l *logger) fold(text string) (again int, log bool) {
	for _, is := range expected {
		if strings.HasPrefix(text, is) {
			return 0, false
		}
	}
	now := time.Now
	if l.now != nil {
		now = l.now
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	kind, at := kindOf(text), now()
	if is := l.said[kind]; is != nil && at.Sub(is.at) < foldFor {
		is.more++
		return 0, false
	} else if is != nil {
		again = is.more
	}
	if l.said == nil || len(l.said) >= kinds {
		l.said = map[string]*folded{}
	}
	l.said[kind] = &folded{at: at}
	return again, true
}

// kindOf is a message without its numbers: ports, connections, places.
func kindOf(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text[:min(len(text), kindMax)])
}

// Fatalf keeps the message of a start, and logs a later one.
func (l *logger) Fatalf(form string, v ...any) {
	l.mu.Lock()
	runs := l.runs
	if !runs {
		l.last = fmt.Errorf(form, v...)
	}
	l.mu.Unlock()
	if runs {
		l.Errorf(form, v...)
	}
}

// fatal is the message of a start that failed.
func (l *logger) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// started says that the server runs, unless its start has failed.
func (l *logger) started() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs = l.last == nil
	return l.last
}
