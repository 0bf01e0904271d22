package node

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// The server's own messages are for a search for faults: a server that is away is one line each second. A fatal one is kept.
func TestLogger(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	say := func(level slog.Level) string {
		text.Reset()
		l := &logger{log: slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: level}))}
		l.Warnf("Waiting for routing %d", 1)
		l.Errorf("Error trying to connect to route (attempt %d)", 2)
		l.Noticef("Server is ready")
		if l.fatal() != nil {
			t.Error(l.fatal())
		}
		l.Fatalf("cannot listen on %d", 3)
		if err := l.fatal(); err == nil || err.Error() != "cannot listen on 3" {
			t.Error(err)
		}
		return text.String()
	}
	if got := say(slog.LevelInfo); got != "" {
		t.Errorf("a person reads %q", got)
	}
	if got := say(slog.LevelDebug); strings.Count(got, "level=DEBUG") != 2 || !strings.Contains(got, "attempt 2") {
		t.Errorf("--verbose has %q", got)
	}
}
