package notify

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/notice"
)

// handed are the environment variables that a program needs to reach the screen. It gets no others, because
// the environment may hold keys.
var handed = []string{
	"PATH", "HOME", "LANG", "LC_ALL", "USER", "LOGNAME", "TMPDIR",
	"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "XDG_SESSION_ID", "XDG_SESSION_TYPE", "XDG_CURRENT_DESKTOP",
	"DBUS_SESSION_BUS_ADDRESS",
}

const killDelay = time.Second // for output that a killed program left open

// desktop shows a notification with the system's own program.
type desktop struct {
	system string // as runtime.GOOS
	lookup func(string) string
}

func newDesktop() *desktop { return &desktop{system: runtime.GOOS, lookup: os.Getenv} }

func (d *desktop) Kind() string { return Desktop }

func (d *desktop) Each() bool { return false }

// words returns the program and its arguments. Text is an argument of its own, never part of a script or an
// option. A desktop shows no links that can be used, so the text names the command instead.
func (d *desktop) words(m Message) []string {
	title, first := m.title(), &m.Listed[0]
	body := plain(first.Why, wordsMax)
	switch {
	case len(m.Listed)+m.More > 1:
		body += " …: fairlead inbox"
	case first.Title != "":
		body += ": " + plain(first.Title, titleMax)
	case first.Kind == "step" && first.Step != "":
		body += ": fairlead approve " + plain(first.Run, idMax) + " " + plain(first.Step, idMax)
	case first.Event == notice.NeedsYou || first.Event == notice.StillNeedsYou:
		body += ": fairlead inbox"
	}
	if d.system == "darwin" {
		return []string{
			"osascript", "-e", "on run argv", "-e", "display notification (item 2 of argv) with title (item 1 of argv)", "-e", "end run",
			title, " " + body,
		}
	}
	return []string{"notify-send", "--app-name=Fairlead", "--", title, body}
}

// seated reports whether there is a screen. macOS has no variable for that, so a notification is always tried
// there.
func (d *desktop) seated() bool {
	return d.system == "darwin" || d.lookup("DISPLAY") != "" || d.lookup("WAYLAND_DISPLAY") != ""
}

// Tell runs the program once.
func (d *desktop) Send(ctx context.Context, m Message) *notice.Failure {
	if !d.seated() {
		return &notice.Failure{
			Cause:  "there is no graphical session here: neither DISPLAY nor WAYLAND_DISPLAY is set",
			WayOut: "start fairlead from within one, or use another target",
		}
	}
	words := d.words(m)
	program, err := exec.LookPath(words[0])
	if err != nil {
		return &notice.Failure{
			Cause:  "no program " + words[0] + " is found in PATH",
			WayOut: "install it (on Debian: libnotify-bin), or remove the desktop from notify in fairlead.yaml",
		}
	}
	ctx, cancel := context.WithTimeout(ctx, tryMax)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, words[1:]...) //nolint:gosec // the system's own program; what is said is an argument
	cmd.WaitDelay = killDelay
	cmd.Dir = "/" // not the repository, whose content is untrusted
	cmd.Env = environ(handed)
	err = cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &notice.Failure{
			Cause:  words[0] + " did not end in " + tryMax.String(),
			WayOut: "see whether the desktop shows notices at all", Again: true,
		}
	case errors.As(err, new(*exec.ExitError)):
		return &notice.Failure{Cause: words[0] + " failed", WayOut: "run it by hand: it says why", Again: true}
	}
	return &notice.Failure{Cause: words[0] + " cannot be started", WayOut: "run it by hand: the shell says why"}
}

// environ is the part of the environment with these names.
func environ(names []string) []string {
	env := []string{}
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); slices.Contains(names, name) {
			env = append(env, kv)
		}
	}
	return env
}
