package demo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon"
	"github.com/fairlead-dev/fairlead/cli/hosts"
	"github.com/fairlead-dev/fairlead/cli/tasks"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/examples"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/read/view"
)

const (
	hostsMax = 5
	leads    = "leader"
	letter   = "letter.txt"
	hostEnd  = 5 * time.Second // for a daemon to end by itself
)

// HostsOptions are the flags of `demo --hosts`.
type HostsOptions struct {
	DemoOptions
	Number  int                        // of machines, the leader's included
	Program string                     // of the daemons; empty: this one
	Again   func(dir string) *exec.Cmd // starts the machine that lost its power again, at once; nil: it stays off
}

// HostsAnswer is what `fairlead demo --hosts 3 --json` prints at the end.
type HostsAnswer struct {
	ForMS   int64        `json:"for_ms"`
	Dir     string       `json:"dir"`
	Task    string       `json:"task"`
	Ran     []string     `json:"ran_on"` // the host of each session, in order
	Cut     string       `json:"cut_off"`
	Missing int          `json:"lines_missing"` // that only the host that was cut off had
	Landed  string       `json:"landed_commit"`
	Letter  []string     `json:"letter"`
	Strays  int          `json:"strays"` // processes left behind; anything but 0 is a bug
	Moments []hostMoment `json:"moments"`
}

type hostMoment struct {
	AtMS int64  `json:"at_ms"`
	What string `json:"what"`
}

// hostDay is a demo with several hosts.
type hostDay struct {
	taskDay
	opts    HostsOptions
	shown   *cli.App
	began   time.Time
	hosts   []*demoHost // the leader first
	cut     *demoHost   // has lost its power
	task    *demoTask
	session string // the task's newest one
	states  map[string]string
	answer  HostsAnswer
}

// Hosts runs a leader and hosts on this machine, and cuts one off while it works.
func Hosts(ctx context.Context, a *cli.App, opts HostsOptions) error {
	switch {
	case opts.Number < 2 || opts.Number > hostsMax:
		return &cli.Coded{
			Code: cli.ExitUsage,
			Err:  fmt.Errorf("--hosts is from 2 to %d machines, the leader's included, not %d", hostsMax, opts.Number),
		}
	case opts.Length != 0:
		return &cli.Coded{Code: cli.ExitUsage, Err: errors.New("--hosts ends by itself when its task has landed: leave out --for")}
	}
	if err := needsGit(); err != nil {
		return err
	}
	if opts.Program == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find the fairlead program: %w", err)
		}
		opts.Program = self
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := scratchFolder()
	if err != nil {
		return err
	}
	d := &hostDay{
		taskDay: taskDay{app: *a}, opts: opts, shown: a, began: time.Now(), states: map[string]string{},
		answer: HostsAnswer{Dir: dir},
	}
	d.app.Out, d.app.Err, d.app.JSON = io.Discard, io.Discard, false
	err = d.live(ctx)
	end := syscall.SIGTERM
	if err != nil {
		end = syscall.SIGKILL // the leader would wait for sessions
	}
	err = errors.Join(err, d.end(context.WithoutCancel(ctx), end))
	if !opts.Keep {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	switch {
	case ctx.Err() != nil:
		return &cli.Coded{
			Code: cli.ExitCancelled,
			Err:  errors.New("the demo was stopped before its task had landed; what it had started has ended"),
		}
	case err != nil:
		return err
	}
	return d.print()
}

func (d *hostDay) live(ctx context.Context) error {
	for _, do := range []func(context.Context) error{d.lead, d.join, d.write, d.cutOff, d.goesOn, d.land} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// say reports what has happened, with the time since the beginning.
func (d *hostDay) say(format string, args ...any) {
	m := hostMoment{AtMS: time.Since(d.began).Milliseconds(), What: fmt.Sprintf(format, args...)}
	d.answer.Moments = append(d.answer.Moments, m)
	if !d.shown.JSON {
		fmt.Fprintf(d.shown.Out, "%6.1f s  %s\n", float64(m.AtMS)/1000, m.What)
	}
}

// lead begins the leader.
func (d *hostDay) lead(ctx context.Context) error {
	d.app.Dir = filepath.Join(d.answer.Dir, leads)
	files, err := fs.Sub(examples.Files, "hosts")
	if err != nil {
		return err
	}
	if err := os.CopyFS(d.app.Dir, files); err != nil {
		return fmt.Errorf("copy the files of the demo: %w", err)
	}
	if err := repository(ctx, d.app.Dir, "Begin with a letter to write"); err != nil {
		return err
	}
	free, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback
	if err != nil {
		return fmt.Errorf("find a free port: %w", err)
	}
	free.Close()
	if err := hosts.Init(&d.app, hosts.Cluster{Name: leads, Team: "demo", Listen: free.Addr().String()}); err != nil {
		return err
	}
	h := &demoHost{name: leads, dir: d.app.Dir}
	d.hosts = []*demoHost{h}
	if err := h.start(exec.Command(d.opts.Program, "up", "--no-browser", "--dir", h.dir, "--listen",
		cmp.Or(d.opts.Listen, "127.0.0.1:0"))); err != nil { //nolint:gosec // Fairlead itself
		return err
	}
	if err := poll(ctx, func() (bool, error) {
		if h.over() {
			return false, h.gone()
		}
		client, err := apiclient.Dial(h.dir)
		if err != nil {
			if apiclient.Away(err) {
				err = nil
			}
			return false, err
		}
		d.client = client
		return true, nil
	}); err != nil {
		return err
	}
	if !d.shown.JSON {
		fmt.Fprintf(d.shown.Out,
			`This takes about a minute and a half. A host that is cut off ends its sessions %.0f s after its last renewal, and is
lost after %.0f s. These are the times of every team, and the demo does not make them shorter.

`, time.Duration(host.EndAfter).Seconds(), time.Duration(host.LostAfter).Seconds())
	}
	if page := d.client.Daemon().Address + "/"; !d.opts.Headless && !d.shown.JSON {
		fmt.Fprintf(d.shown.Out, `ready %s
Mission Control is at this address; its key L shows the hosts. In another terminal:
  fairlead hosts --dir %[2]s
  fairlead why writer --dir %[2]s
  fairlead open --dir %[2]s

`, page, d.app.Dir)
		code, err := d.client.Logins.NewCode(ctx)
		if err != nil {
			return err
		}
		daemon.OpenBrowser(daemon.SignInURL(page, code.Code) + "/hosts")
	}
	d.say("%s leads the team: it has the journal and the page, and listens for hosts on %s (process %d)", leads, free.Addr(),
		h.cmd.Process.Pid)
	return nil
}

// join invites the hosts, and starts their daemons.
func (d *hostDay) join(ctx context.Context) error {
	for i := range d.opts.Number - 1 {
		name := string(rune('b' + i)) // before the leader's, so that a host comes first where all else is equal
		h := &demoHost{name: name, dir: filepath.Join(d.answer.Dir, name)}
		d.hosts = append(d.hosts, h)
		if err := os.Mkdir(h.dir, 0o700); err != nil {
			return err
		}
		invited, err := d.client.Invite(ctx, nil, false)
		if err != nil {
			return cli.Faulty(err)
		}
		app := d.app
		app.Dir = h.dir
		if err := hosts.Join(ctx, &app, []string{invited.Token}, hosts.Joining{Name: name}); err != nil {
			return err
		}
		if err := h.start(exec.Command(d.opts.Program, "up", "--dir", h.dir)); err != nil { //nolint:gosec // Fairlead itself
			return err
		}
		if err := d.until(ctx, func(all view.Hosts) (bool, error) {
			return slices.ContainsFunc(all.Hosts, func(v view.Host) bool { return v.Name == name && v.Connected && v.LeaseAgeMS >= 0 }), nil
		}); err != nil {
			return err
		}
		d.say("host %s has joined with an invitation, and renews its lease every %.0f s (process %d, folder %s)", name,
			time.Duration(host.RenewEvery).Seconds(), h.cmd.Process.Pid, h.dir)
	}
	return nil
}

// write lets the task be done to the point where it comes back, and sends it back.
func (d *hostDay) write(ctx context.Context) (err error) {
	if d.task, err = d.give(ctx, "Write a letter of nine lines", "writer"); err != nil {
		return err
	}
	d.answer.Task = d.task.ID
	d.say("task %s is given to %s, who has `host: any`", d.task.ID, d.task.Agent)
	if err := d.placed(ctx); err != nil {
		return err
	}
	if err := d.waits(ctx, d.task); err != nil {
		return err
	}
	d.say("%s has ended with %s. They came back to the leader, and the task waits for a person", d.session,
		cli.HowMany(d.lines(d.app.Dir), "line", "lines"))
	if err := tasks.Request(ctx, &d.app, d.client, d.task.ID, "Write it to the end."); err != nil {
		return err
	}
	d.say("the task is sent back: \"Write it to the end.\"")
	return d.placed(ctx)
}

// lines counts those of the letter in the task's checkout on a machine.
func (d *hostDay) lines(dir string) int {
	text, _ := os.ReadFile(filepath.Join(dir, ".agents", "worktrees", d.task.ID,
		letter)) //nolint:gosec // in our own folder; without the file there are none
	return bytes.Count(text, []byte("\n"))
}

// cutOff ends all processes of the host on which the task runs, when it has written more than the leader knows.
func (d *hostDay) cutOff(ctx context.Context) error {
	at := slices.IndexFunc(d.hosts, func(h *demoHost) bool { return h.name == d.answer.Ran[len(d.answer.Ran)-1] })
	if at <= 0 {
		return fmt.Errorf("session %s runs on the leader's machine, so no host can be cut off", d.session)
	}
	h, before := d.hosts[at], d.lines(d.app.Dir)
	if err := d.until(ctx, func(view.Hosts) (bool, error) { return d.lines(h.dir) > before, nil }); err != nil {
		return err
	}
	d.cut, d.answer.Cut = h, h.name
	was := h.cmd.Process.Pid
	shims, others, err := h.end(ctx, syscall.SIGKILL)
	if err != nil {
		return err
	}
	if shims == 0 {
		return fmt.Errorf("session %s ended before its host was cut off: this machine is too busy now; try again", d.session)
	}
	d.answer.Missing = d.lines(h.dir) - before
	d.say("%s loses its power: SIGKILL to its daemon (process %d), %s and %s. It had written %s more, which the leader does not have",
		h.name, was, cli.HowMany(shims, "shim", "shims"), cli.HowMany(others, "other process", "other processes"),
		cli.HowMany(d.answer.Missing, "line", "lines"))
	if d.opts.Again == nil {
		return nil
	}
	if err := h.start(d.opts.Again(h.dir)); err != nil {
		return err
	}
	d.say("%s is switched on again", h.name)
	return nil
}

// goesOn waits for the session that takes the place of the one that was cut off.
func (d *hostDay) goesOn(ctx context.Context) error {
	was := d.session
	if err := d.placed(ctx); err != nil {
		return err
	}
	d.say("%s begins anew with what the leader has: the %s that came back. What %s had written since on %s is missing", d.session,
		cli.HowMany(d.lines(d.app.Dir), "line", "lines"), was, d.cut.name)
	return nil
}

// land merges the task.
func (d *hostDay) land(ctx context.Context) error {
	if err := d.waits(ctx, d.task); err != nil {
		return err
	}
	d.say("%s has ended, its lines are checked, and the task waits for a person", d.session)
	if err := tasks.Merge(ctx, &d.app, d.client, d.task.ID, api.MergeBody{}, true); err != nil {
		return err
	}
	r, err := d.client.Runs.Show(ctx, d.task.ID)
	if err != nil {
		return err
	}
	d.answer.Landed = r.Task.LandedCommit
	text, err := os.ReadFile(filepath.Join(d.app.Dir, letter)) // of the branch on which it landed
	if err != nil {
		return err
	}
	d.answer.Letter = strings.Split(strings.TrimSpace(string(text)), "\n")
	d.say("%s has landed on %s as %.10s", d.task.ID, d.task.Base, d.answer.Landed)
	return nil
}

// placed waits until the task has a new session on a host, and says on which and why.
func (d *hostDay) placed(ctx context.Context) error {
	where := ""
	if err := d.until(ctx, func(all view.Hosts) (bool, error) {
		for _, h := range all.Hosts {
			for _, s := range h.Sessions {
				if s.Run == d.task.ID && s.Session != d.session {
					d.session, where = s.Session, h.Name
					return true, nil
				}
			}
		}
		r, err := d.client.Runs.Show(ctx, d.task.ID)
		if err == nil && r.Task.Status == view.TaskFailed {
			err = fmt.Errorf("task %s failed: %s", d.task.ID, cli.Line(r.Task.Why, cli.ErrorWidth))
		}
		return false, err
	}); err != nil {
		return err
	}
	d.answer.Ran = append(d.answer.Ran, where)
	why, err := d.client.Why(ctx, d.task.Agent)
	if err != nil {
		return err
	}
	reason := "session " + d.session + ": on " + where
	for _, e := range why.Evidence {
		if strings.HasPrefix(e.What, reason) {
			reason = e.What
		}
	}
	d.say("%s", reason)
	return nil
}

// until looks at the hosts again and again, and says what the one without power is to the leader.
func (d *hostDay) until(ctx context.Context, done func(view.Hosts) (bool, error)) error {
	return poll(ctx, func() (bool, error) {
		for _, h := range d.hosts {
			if h != d.cut && h.over() {
				return false, h.gone()
			}
		}
		all, err := d.client.Hosts(ctx)
		if err != nil {
			return false, cli.Faulty(err)
		}
		for _, h := range all.Hosts {
			if d.cut != nil && h.Name == d.cut.name && h.State != cmp.Or(d.states[h.Name], string(host.Joined)) {
				d.states[h.Name] = h.State
				d.say("%s is %s: %s", h.Name, h.State, cli.Line(h.Why, cli.ErrorWidth))
			}
		}
		return done(all)
	})
}

// end ends all that was started, the leader last, and counts what is left.
func (d *hostDay) end(ctx context.Context, sig syscall.Signal) error {
	if !d.shown.JSON {
		fmt.Fprintln(d.shown.Err, "stopping: ending what still runs")
	}
	var errs []error
	if d.client != nil {
		errs = append(errs, d.client.Close())
	}
	for _, h := range slices.Backward(d.hosts) {
		_, _, ended := h.end(ctx, sig)
		left, err := shim.Strays(h.dir)
		d.answer.Strays += len(left)
		errs = append(errs, ended, err)
	}
	d.answer.ForMS = time.Since(d.began).Milliseconds()
	return errors.Join(errs...)
}

func (d *hostDay) print() error {
	return d.shown.Show(d.answer, func() error {
		fmt.Fprintf(d.shown.Out, "\nin %d s: %s on %s; %s left behind. The letter on %s:\n", d.answer.ForMS/1000,
			cli.HowMany(len(d.answer.Ran), "session", "sessions"),
			strings.Join(d.answer.Ran, ", "), cli.HowMany(d.answer.Strays, "process", "processes"), d.task.Base)
		for _, line := range d.answer.Letter {
			fmt.Fprintln(d.shown.Out, "  "+cli.Line(line, cli.ErrorWidth))
		}
		if d.opts.Keep {
			fmt.Fprintln(d.shown.Out, "the repositories are in "+d.answer.Dir)
		}
		return nil
	})
}

// demoHost is another machine: a folder, and the process of its daemon.
type demoHost struct {
	name, dir string
	cmd       *exec.Cmd
	ended     chan struct{}
}

// start runs the daemon. Ctrl-C on the terminal does not reach it.
func (h *demoHost) start(cmd *exec.Cmd) error {
	log, err := os.Create(h.dir + ".log")
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stderr, cmd.SysProcAttr = log, &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the daemon of host %s: %w", h.name, err)
	}
	h.cmd, h.ended = cmd, make(chan struct{})
	go func() {
		_ = cmd.Wait() // its log says why it ended
		close(h.ended)
	}()
	return nil
}

// over reports whether no daemon runs.
func (h *demoHost) over() bool {
	if h.cmd == nil {
		return true
	}
	select {
	case <-h.ended:
		return true
	default:
		return false
	}
}

// gone is the error when a daemon has ended by itself.
func (h *demoHost) gone() error {
	text, err := os.ReadFile(h.dir + ".log")
	return errors.Join(fmt.Errorf("the daemon of %s has ended: %s", h.name, cli.Line(strings.TrimSpace(string(text)), cli.ErrorWidth)), err)
}

// end sends the daemon a signal, and kills the shims and what they leave.
func (h *demoHost) end(ctx context.Context, sig syscall.Signal) (shims, others int, err error) {
	if !h.over() {
		_ = h.cmd.Process.Signal(sig) // it may have ended meanwhile
		select {
		case <-h.ended:
		case <-time.After(hostEnd):
			_ = h.cmd.Process.Kill()
			<-h.ended
		}
	}
	return endSessions(ctx, h.dir)
}

// endSessions kills the shims of a workspace, and the processes of their sessions.
func endSessions(ctx context.Context, dir string) (shims, others int, err error) {
	folders, err := filepath.Glob(filepath.Join(dir, ".fairlead", "sessions", "*"))
	if err != nil {
		return 0, 0, err
	}
	for _, folder := range folders {
		seen, err := shim.Look(ctx, folder)
		if err != nil || seen.Shim != shim.Lives {
			continue // it has no shim
		}
		if syscall.Kill(seen.ShimPID, syscall.SIGKILL) == nil {
			shims++
		}
		if err := poll(ctx, func() (bool, error) { return shim.LifeOf(seen.ShimPID, 0) != shim.Lives, nil }); err != nil {
			return shims, 0, err
		}
	}
	rest, err := shim.EndStrays(ctx, dir)
	return shims, len(rest), err
}
