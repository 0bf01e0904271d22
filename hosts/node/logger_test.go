package node

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A warning or an error of the server is logged as one. What comes again within a minute is folded, and what a sound team has is for
// debugging. A fatal one is kept.
func TestLogger(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	now := time.Unix(0, 0)
	l := &logger{
		log: slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})),
		now: func() time.Time { return now },
	}
	for _, tt := range []struct {
		name string
		say  func()
		want string // the level and more
	}{
		{"an error", func() { l.Errorf("JetStream out of %s resources, will be DISABLED", "file") }, "level=ERROR"},
		{"a warning", func() { l.Warnf("%s", "RAFT [x - S-R3F-y] Snapshot corrupt, checksums did not match") }, "level=WARN"},
		{"a connection that breaks", func() { l.Errorf("127.0.0.1:%d - rid:%d - Error flushing: broken pipe", 4001, 7) }, "level=ERROR"},
		{"and breaks again", func() { l.Errorf("127.0.0.1:%d - rid:%d - Error flushing: broken pipe", 4002, 8) }, "level=DEBUG"},
		{"a minute later", func() {
			now = now.Add(foldFor)
			l.Errorf("127.0.0.1:%d - rid:%d - Error flushing: broken pipe", 4003, 9)
		}, "level=ERROR again=1"},
		{"another host is away", func() { l.Errorf("Error trying to connect to route (attempt %v): %v", 2, "refused") }, "level=DEBUG"},
		{"it starts", func() { l.Warnf("Waiting for routing to be established...") }, "level=DEBUG"},
		{"a notice", func() { l.Noticef("Server is ready") }, ""},
	} {
		text.Reset()
		tt.say()
		for word := range strings.FieldsSeq(tt.want) {
			if !strings.Contains(text.String(), word) {
				t.Errorf("%s: %q, want %s", tt.name, &text, tt.want)
			}
		}
		if tt.want == "" && text.Len() > 0 {
			t.Errorf("%s: %q", tt.name, &text)
		}
	}
	for n := range 2 * kinds {
		l.Errorf("%s", strings.Repeat("x", n))
	}
	if len(l.said) > kinds {
		t.Errorf("%d kinds are remembered", len(l.said))
	}
	if l.fatal() != nil {
		t.Error(l.fatal())
	}
	l.Fatalf("cannot listen on %d", 3)
	if err := l.fatal(); err == nil || err.Error() != "cannot listen on 3" {
		t.Error(err)
	}
}
