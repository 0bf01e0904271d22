package node

import (
	"fmt"
	"log/slog"
	"sync"
)

// logger passes the server's messages on, for debugging. Fairlead's own messages tell a person what has failed, such
// as an order that is not stored. A fatal one does not end this process: it is kept for start.
type logger struct {
	log *slog.Logger

	mu   sync.Mutex
	last error
}

func (l *logger) Noticef(string, ...any)       {}
func (l *logger) Debugf(string, ...any)        {}
func (l *logger) Tracef(string, ...any)        {}
func (l *logger) Warnf(form string, v ...any)  { l.log.Debug(fmt.Sprintf(form, v...)) }
func (l *logger) Errorf(form string, v ...any) { l.log.Debug(fmt.Sprintf(form, v...)) }

// Fatalf keeps the message.
func (l *logger) Fatalf(form string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = fmt.Errorf(form, v...)
}

func (l *logger) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}
