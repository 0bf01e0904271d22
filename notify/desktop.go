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
)

// handed are the environment variables that a program needs to reach the screen. It gets no others, because
// the environment may hold keys.
var handed = []string{
	"PATH", "HOME", "LANG", "LC_ALL", "USER", "LOGNAME", "TMPDIR",
	"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "XDG_SESSION_ID", "XDG_SESSION_TYPE", "XDG_CURRENT_DESKTOP", "DBUS_SESSION_BUS_ADDRESS",
}

const killDelay = time.Second // for output that a killed program left open

// desktop shows a notification with the system's own program.
type desktop struct {
	system string // as runtime.GOOS
	lookup func(string) string
}

func newDesktop() *desktop { return &desktop{system: runtime.GOOS, lookup: os.Getenv} }

func (d *desktop) name() string { return "desktop" }

// words returns the program and its arguments. Text is an argument of its own, never part of a script or an
// option.
func (d *desktop) words(n Notice) []string {
	who, how := n.Workflow, "fairlead approve "+n.Run+" "+n.Step
	if n.Agent != "" {
		who, how = n.Agent, "fairlead inbox"
	}
	title := "Fairlead: " + unmarked.Replace(who) + " waits for you"
	body := unmarked.Replace(n.Why + ": " + how)
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

func (d *desktop) tell(ctx context.Context, n Notice) error {
	if !d.seated() {
		return &trouble{cause: "there is no graphical session here: neither DISPLAY nor WAYLAND_DISPLAY is set", wayOut: "start fairlead from within one, or use notify.webhook"}
	}
	words := d.words(n)
	program, err := exec.LookPath(words[0])
	if err != nil {
		return &trouble{cause: "no program " + words[0] + " is found in PATH", wayOut: "install it (on Debian: libnotify-bin), or take notify.desktop out of fairlead.yaml"}
	}
	cmd := exec.CommandContext(ctx, program, words[1:]...) //nolint:gosec // the system's own program; what is said is an argument
	cmd.WaitDelay = killDelay
	cmd.Dir = "/" // not the repository, whose content is untrusted
	cmd.Env = []string{}
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); slices.Contains(handed, name) {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	err = cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &trouble{cause: words[0] + " did not end in " + tryMax.String(), wayOut: "see whether the desktop shows notices at all", again: true}
	case errors.As(err, new(*exec.ExitError)):
		return &trouble{cause: words[0] + " failed", wayOut: "run it by hand: it says why", again: true}
	}
	return &trouble{cause: words[0] + " cannot be started", wayOut: "run it by hand: the shell says why"}
}
