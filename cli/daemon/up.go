package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon/worker"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/hosts/engine"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// UpOptions are the flags of `up`.
type UpOptions struct {
	Listen    string
	Detach    bool
	NoBrowser bool
	Verbose   bool
	Plan      bool
	Governing string // the sum of a changed fairlead.yaml that a person confirms
}

// Up runs the daemon until it is stopped.
func Up(ctx context.Context, a *cli.App, opts UpOptions) (err error) {
	if err := a.Place(nil); err != nil {
		return err
	}
	if worker.Joined(a.Dir) {
		return upHost(ctx, a, opts, nil)
	}
	// From here on signals are handled: one that arrives during the start stops what was started.
	signals := make(chan os.Signal, 4)
	beside := &engines{signals: signals}
	defer func() { err = errors.Join(err, beside.Close()) }()
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE) // closing a terminal must not end the daemon

	wait := time.Duration(0) // before this host tries to lead again
	for first := true; ; first = false {
		leads, err := beside.mayLead(ctx, a, opts, first)
		if err != nil {
			return err
		}
		if !leads {
			switch claimed, err := beside.follow(ctx, a, opts, signals, wait); {
			case errors.Is(err, errPlain):
				return upHost(ctx, a, opts, beside)
			case err != nil || !claimed:
				return err
			}
			continue
		}
		err = upLeader(ctx, a, opts, beside, signals)
		if errors.Is(err, errAsked) {
			return nil
		}
		if !beside.goesOn(err, first) {
			return err
		}
		a.Logger(opts.Verbose).Warn("this host no longer leads the team, and continues as a host", "why", err)
		beside.demote(err)
		beside.release()
		wait = leadAgain
	}
}

// upLeader runs the daemons of a host that leads, until it is stopped or does not lead any longer.
func upLeader(ctx context.Context, a *cli.App, opts UpOptions, beside *engines, signals <-chan os.Signal) error {
	g, source, err := settled(ctx, a, opts.Governing)
	if err != nil {
		return err
	}
	d, err := openDaemon(ctx,
		&Daemon{
			Conf: source.Conf, choice: g, log: slog.New(recoveryLog{a.Logger(opts.Verbose).Handler(), a}),
			reloads: make(chan *config.Source, 1), beside: beside, takesOver: beside.said,
		}, opts.Listen)
	if err != nil {
		return err
	}
	first := !beside.said
	if beside.said = true; !first {
		d.log.Info("this host leads the team now", "url", d.Url)
	} else if err := sayReady(ctx, a, d); err != nil {
		return errors.Join(err, d.Close())
	}
	if first && !opts.NoBrowser && !a.JSON && cli.Tty(a.Out) {
		OpenSignedIn(d, "")
	}
	return serveUntilStopped(ctx, a, d, opts, signals)
}

// sayReady prints the one line that programs wait for. On a terminal, a line for each set of rows that walls here do not hold
// follows; in JSON the line has them.
func sayReady(ctx context.Context, a *cli.App, d *Daemon) error {
	ready, onTerminal := map[string]any{"ready": true, "url": d.Url, "pid": os.Getpid()}, !a.JSON && cli.Tty(a.Out)
	var groups []sessions.WallGroup
	if a.JSON || onTerminal {
		groups = d.Engine.Sessions.WallGroups(ctx)
		ready["walls"] = groups
	}
	err := a.Say(ready, "%s", "ready "+d.Url)
	for _, g := range groups {
		if onTerminal && err == nil {
			_, err = fmt.Fprintln(a.Out, cli.Plain(g.String()))
		}
	}
	return err
}

// untilStopped waits for the end: a first signal lets sessions finish, a second ends them, a third
// leaves them to the next daemon.
func untilStopped(ctx context.Context, a *cli.App, d *Daemon, signals <-chan os.Signal) error {
	asked := 0
	for {
		select {
		case <-d.Engine.Loop.Stopped():
			return nil
		case source := <-d.reloads:
			return reloaded{source}
		case <-d.beside.moves:
			return reloaded{d.choice.in.Load()} // the next daemon moves the journal
		case <-d.beside.cut:
			_ = d.journal.Close() // what waits to be stored there has no proof in time
			return errUnwritten
		case <-d.beside.deposed():
			return errDeposed
		case err := <-d.Ran:
			d.Ran <- nil
			return err
		case sig := <-signals:
			asked++
			if asked > 2 {
				fmt.Fprintln(a.Err, "fairlead: exiting now; running sessions continue, and the next `fairlead up` adopts them")
				return nil
			}
			d.beside.stopping.Store(true) // also if that cannot be stored, because another host leads by now
			by := change.Actor{Kind: "human", ID: "signal " + sig.String()}
			if _, err := d.stop(ctx, by, asked == 2); err != nil {
				return err
			}
			sayStopping(ctx, a, d, asked)
		}
	}
}

func openSessions(v view.TeamView) (open []string) {
	for _, agent := range v.Agents {
		for _, s := range agent.Sessions {
			open = append(open, s.ID)
		}
	}
	return open
}

// sayStopping says what is waited for, and how to avoid waiting.
func sayStopping(ctx context.Context, a *cli.App, d *Daemon, asked int) {
	view, err := d.Engine.Status.Team(ctx)
	if err != nil {
		return // already over
	}
	open := openSessions(view)
	if len(open) == 0 || a.JSON {
		return
	}
	if asked == 1 {
		fmt.Fprintf(a.Err, "fairlead: waiting for %s to finish; repeat the signal to end them now\n", strings.Join(open, ", "))
		return
	}
	fmt.Fprintf(a.Err, "fairlead: ending %s\n", strings.Join(open, ", "))
}

// UpDetached starts the daemon in a process session of its own, and returns when it serves.
func UpDetached(ctx context.Context, a *cli.App, opts UpOptions) error {
	host, err := IsHost(a)
	if err != nil {
		return err
	}
	var conf *config.Config
	if !host {
		g, source, err := settled(ctx, a, opts.Governing)
		if err != nil {
			return err
		}
		conf, opts.Governing = source.Conf, g.yes
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the fairlead program: %w", err)
	}
	words := []string{"up", "--no-browser", "--dir", a.Dir}
	if opts.Listen != "" {
		words = append(words, "--listen", opts.Listen)
	}
	if opts.Governing != "" {
		words = append(words, "--governing", opts.Governing)
	}
	if a.JSON {
		words = append(words, "--json")
	}
	logFile, logPath, err := daemonLog(a)
	if err != nil {
		return err
	}
	defer logFile.Close()
	began, err := logFile.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self, words...) //nolint:gosec // Fairlead itself
	cmd.Stderr = logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	ready, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	asked, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	leave := context.AfterFunc(asked, func() { _ = cmd.Process.Signal(syscall.SIGTERM) }) // or it has ended
	defer leave()
	first, err := bufio.NewReader(ready).ReadString('\n')
	if asked.Err() != nil {
		stop() // another Ctrl-C does not wait
		_ = cmd.Wait()
		return &cli.Coded{Code: cli.ExitCancelled, Err: errors.New("the start was cancelled, and fairlead has stopped again")}
	}
	if err == nil {
		fmt.Fprint(a.Out, first)
		if !host {
			sayDisk(ctx, a, conf)
		}
		return cmd.Process.Release()
	}
	_ = cmd.Wait() // its log says why it ended
	said, rerr := os.ReadFile(logPath)
	if rerr != nil || int64(len(said)) <= began {
		return fmt.Errorf("the daemon ended before it was ready; see %s", logPath)
	}
	text := strings.TrimPrefix(strings.TrimSpace(string(said[began:])), "fairlead: ")
	return &cli.Coded{Code: max(cmd.ProcessState.ExitCode(), cli.ExitFailed), Err: errors.New(text)}
}

// daemonLog opens the log of a daemon in the background.
func daemonLog(a *cli.App) (*os.File, string, error) {
	dir := a.Dir + "/.fairlead/log"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", fmt.Errorf("make the folder of the log: %w", err)
	}
	path := dir + "/daemon.log"
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600) //nolint:gosec // Fairlead's own folder
	if err != nil {
		return nil, "", fmt.Errorf("open the daemon's log: %w", err)
	}
	return file, path, nil
}

// Down stops the daemon; now ends running sessions.
func Down(ctx context.Context, a *cli.App, now bool) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	client, err := a.Dial()
	if err != nil {
		return err
	}
	defer client.Close()
	host, err := IsHost(a)
	if err != nil {
		return err
	}
	stopping, err := client.Down(ctx, now)
	if err != nil {
		return err
	}
	if stopping.Unwritten != "" {
		if err := untilGone(ctx, a); err != nil {
			return err
		}
		return a.Say(map[string]any{"down": true, "unwritten": stopping.Unwritten}, "fairlead is down; %s", stopping.Unwritten)
	}
	if host { // the sessions are the leader's
		if err := untilGone(ctx, a); err != nil {
			return err
		}
		return a.Say(map[string]bool{"down": true},
			"the host is down; a session that still runs ends at its deadline unless `fairlead up` runs before that")
	}
	said := ""
	for {
		view, err := client.Agents(ctx)
		if err != nil {
			break // the daemon no longer answers
		}
		if text := strings.Join(openSessions(view), ", "); text != said && text != "" && !a.JSON {
			fmt.Fprintf(a.Err, DownWords(now), text)
			said = text
		}
		if err := cli.Pause(ctx, cli.DownPoll); err != nil {
			return &cli.Coded{
				Code: cli.ExitCancelled,
				Err:  errors.New("stopped waiting; fairlead still stops as soon as its sessions have finished"),
			}
		}
	}
	if err := untilGone(ctx, a); err != nil {
		return err
	}
	text := "fairlead is down; desired states are kept for the next `fairlead up`"
	if facts, err := engine.LoadFacts(worker.Folder(a.Dir)); err == nil && facts.Stream {
		text = "fairlead is down on this machine; while two engine hosts run, one of them leads the team and starts agents. `fairlead hold` there holds the team"
	}
	return a.Say(map[string]bool{"down": true}, "%s", text)
}

// DownWords says what is waited for, and how to avoid waiting.
func DownWords(now bool) string {
	if now {
		return "ending %s\n"
	}
	return "waiting for %s to finish; `fairlead down --now` ends them\n"
}

// untilGone waits until the workspace is free, so that `fairlead up` can follow at once.
func untilGone(ctx context.Context, a *cli.App) error {
	for {
		if free, err := workspace.Free(a.Dir); free || err != nil {
			return err
		}
		if err := cli.Pause(ctx, cli.DownPoll); err != nil {
			return err
		}
	}
}

// SignInURL returns the address that signs a browser in. The code comes after the #, and browsers send that
// part to no server; the page exchanges it and removes it from the address bar.
func SignInURL(page, code string) string { return page + "#code=" + code }

// OpenSignedIn shows a place of a daemon's page in a browser, such as now, and signs the browser in. Other users can read the arguments of
// the program that opens the browser, so the code in them is valid once and for seconds.
func OpenSignedIn(d *Daemon, place string) {
	if browserProgram() != "" {
		code, _ := d.Logins.NewCode()
		OpenBrowser(SignInURL(d.Url, code) + "/" + place)
	}
}

// OpenBrowser shows a page in a browser, if there is one. The address is printed in any case.
func OpenBrowser(url string) {
	name := browserProgram()
	if name == "" {
		return
	}
	cmd := exec.Command(name, url) //nolint:gosec // Fairlead's own address
	if err := cmd.Start(); err != nil {
		return
	}
	go func() { _ = cmd.Wait() }() // whether the browser works does not matter here
}

// browserProgram returns the program that opens a browser; empty if there is no display.
func browserProgram() string {
	switch {
	case runtime.GOOS == "darwin":
		return "open"
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return ""
	}
	return "xdg-open"
}
