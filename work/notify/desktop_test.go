package notify

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/notice"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// screen puts a fake notify-send into PATH, which records its arguments and behaves as the test says.
func screen(t *testing.T, script string) (said string) {
	t.Helper()
	if runtime.GOOS == "darwin" {
		t.Skip("here the program is osascript, which shows a real notice")
	}
	dir := t.TempDir()
	said = filepath.Join(dir, "said")
	text := "#!/bin/sh\nfor word; do echo \"<$word>\"; done > " + said + "\n/usr/bin/env >> " + said + "\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(dir, "notify-send"), []byte(text), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	t.Setenv("DISPLAY", ":7")
	return said
}

func TestDesktop(t *testing.T) {
	said := screen(t, "")
	t.Setenv("SOME_KEY", "hunter2")
	m := asked(1)
	m.Listed[0].Workflow, m.Listed[0].Why = "<b>re&lease</b>", "--icon=x"
	if failed := newDesktop().Send(t.Context(), m); failed != nil {
		t.Fatal(failed)
	}
	b, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	want := "<--app-name=Fairlead>\n<-->\n<Fairlead: ‹b›re＆lease‹/b› waits for you>\n<--icon=x: fairlead approve r1 s1>\n"
	if got := string(b); !strings.HasPrefix(got, want) || !strings.Contains(got, "DISPLAY=:7") || strings.Contains(got, "hunter2") {
		t.Errorf("it was given:\n%s\nwant:\n%s", got, want)
	}
}

// The notice of an agent's question points to the inbox.
func TestDesktopOfAgents(t *testing.T) {
	words := newDesktop().words(Message{Listed: []notice.Notice{{
		Event: notice.NeedsYou, Kind: "permission", Agent: "coder",
		Why: "coder asks for permission (q7)",
	}}})
	title, body := words[len(words)-2], strings.TrimSpace(words[len(words)-1])
	if title != "Fairlead: coder waits for you" || body != "coder asks for permission (q7): fairlead inbox" {
		t.Errorf("%q: %q", title, body)
	}
}

// Each failure to reach a screen says what is needed, and whether to retry.
func TestNoDesktop(t *testing.T) {
	screen(t, "echo hunter2 >&2; exit 3")
	failing := newDesktop().Send(t.Context(), asked(1))
	noScreen := (&desktop{system: "linux", lookup: func(string) string { return "" }}).Send(t.Context(), asked(1))
	t.Setenv("PATH", t.TempDir())
	noProgram := newDesktop().Send(t.Context(), asked(1))
	for _, c := range []struct {
		why   *notice.Failure
		want  string
		again bool
	}{
		{failing, "notify-send failed; run it by hand", true},
		{noScreen, "no graphical session", false},
		{noProgram, "no program notify-send is found in PATH; install it", false},
	} {
		if c.why == nil || !strings.Contains(c.why.Error(), c.want) || c.why.Again != c.again ||
			strings.Contains(c.why.Error(), "hunter2") {
			t.Errorf("%v, want %s, again %v", c.why, c.want, c.again)
		}
	}
}

// A program that hangs is killed, and output that it left open is not waited for.
func TestDesktopHangs(t *testing.T) {
	said := screen(t, "exec sleep 1000")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan *notice.Failure, 1)
	go func() { done <- newDesktop().Send(ctx, asked(1)) }()
	wait.Until(t, "it was started", func() bool {
		b, err := os.ReadFile(said)
		return err == nil && strings.Contains(string(b), "DISPLAY")
	})
	cancel()
	if failed := wait.For(t, "the end of the try", done); failed == nil || !failed.Again {
		t.Errorf("%v", failed)
	}
}

// On macOS the text is an argument of the script, not part of it.
func TestAppleScript(t *testing.T) {
	m := asked(1)
	m.Listed[0].Why = `" & (do shell script "true") & "`
	words := (&desktop{system: "darwin"}).words(m)
	if words[0] != "osascript" || len(words) != 9 || words[7] != "Fairlead: release waits for you" || strings.HasPrefix(words[8], "-") {
		t.Errorf("%q", words)
	}
	if strings.Contains(strings.Join(words[:7], " "), "shell script") {
		t.Errorf("text became script: %q", words)
	}
}
