// Package boundedlog is the log of a small process that runs beside others: a notepad with a fixed number of pages.
//
// Such a process has no person who reads along, and runs for days. What it writes again and again must not fill the disk.
//
// The one promise: a log writes at most as many bytes as it was given, and a line is written whole or not at all.
package boundedlog

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Log writes lines with their time until the next one would exceed its limit, and then discards them all. Its methods may be called
// concurrently.
type Log struct {
	mu   sync.Mutex
	to   io.Writer
	left int
}

// New returns a log of at most bytesMax bytes.
func New(to io.Writer, bytesMax int) *Log { return &Log{to: to, left: bytesMax} }

// Print writes one line. An error of the writer is ignored: there is nowhere else to report it.
func (l *Log) Print(format string, args ...any) {
	line := time.Now().UTC().Format(time.RFC3339) + " " + fmt.Sprintf(format, args...) + "\n"
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(line) > l.left {
		l.left = 0
		return
	}
	l.left -= len(line)
	_, _ = io.WriteString(l.to, line)
}
