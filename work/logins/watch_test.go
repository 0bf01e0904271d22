package logins_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/fairlead-dev/fairlead/files/login"
	"github.com/fairlead-dev/fairlead/work/logins"
)

// lines is a log that can be read while it is written.
type lines struct {
	mu    sync.Mutex
	all   bytes.Buffer
	wrote chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.wrote <- struct{}{}:
	default:
	}
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

func creds(n int, more string) string {
	return fmt.Sprintf(`{"access_token":"a%d","expiry_date":%d,"refresh_token":"r%d"%s}`, n, n, n, more)
}

// until waits for what a file has to say.
func until(t *testing.T, file, want string) {
	t.Helper()
	notify, err := fsnotify.NewWatcher()
	if err == nil {
		err = notify.Add(filepath.Dir(file))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer notify.Close()
	for {
		text, _ := os.ReadFile(file) // it may be missing for a moment
		if strings.Contains(string(text), want) {
			return
		}
		select {
		case <-notify.Events:
		case <-t.Context().Done():
			t.Fatalf("%s is %s, want %s", file, text, want)
		case <-time.After(20 * time.Second): // less than the half minute in which everything is looked at
			t.Fatalf("%s is %s, want %s", file, text, want)
		}
	}
}

// TestWatch checks that a refresh in a session reaches the person's file and one of the person the session's, while both run, for a
// store that was made before and one that was made later, and that what is no token is said once and without its text.
func TestWatch(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	log := &lines{wrote: make(chan struct{}, 1)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	begin := func() {
		go func() {
			defer close(ended)
			logins.Watch(ctx, state, slog.New(slog.NewTextHandler(log, nil)))
		}()
	}
	for i, inPlace := range []bool{true, false} {
		home := t.TempDir()
		store := login.In(state, "qwen", home, inPlace)
		person, session := filepath.Join(home, "oauth_creds.json"), filepath.Join(store.Folder, "oauth_creds.json")
		write := func(file, text string) {
			t.Helper()
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(person, creds(1, ""))
		if err := store.Keep(); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Sync(true); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			begin()
		}
		write(session, creds(2, ""))
		until(t, person, `"r2"`)
		write(person, creds(3, ""))
		until(t, session, `"r3"`)
		write(session, creds(4, `,"hooks":"secret"`))
		until(t, person, `"r4"`)
		write(session, creds(5, `,"hooks":"secret"`))
		until(t, person, `"r5"`)
		if text, err := os.ReadFile(person); err != nil || strings.Contains(string(text), "hooks") {
			t.Errorf("the person's file is %s, %v", text, err)
		}
	}
	stop()
	<-ended
	if said := log.String(); strings.Count(said, "more than tokens differs") != 1 || strings.Contains(said, "secret") || strings.Contains(said, "r4") {
		t.Errorf("the log is %s", said)
	}
}
