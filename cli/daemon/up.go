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
	"strings"
	"syscall"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/controller/seam"
)

// UpOptions are the flags of `up`.
type UpOptions struct {
	Listen    string
	Detach    bool
	NoBrowser bool
	Verbose   bool
	Plan      bool
}

// Up runs the daemon until it is stopped.
func Up(ctx context.Context, a *cli.App, opts UpOptions) error {
	conf, err := a.Load()
	if err != nil {
		return err
	}
	// From here on signals are handled: one that arrives during the start stops what was started.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE) // closing a terminal must not end the daemon

	d, err := openDaemon(ctx, &Daemon{Conf: conf, log: slog.New(recoveryLog{a.Logger(opts.Verbose).Handler(), a}), reloads: make(chan *config.Config, 1)}, opts.Listen)
	if err != nil {
		return err
	}
	if err := sayReady(a, d); err != nil {
		return errors.Join(err, d.Close())
	}
	if !opts.NoBrowser && !a.JSON && cli.Tty(a.Out) {
		OpenSignedIn(d, "")
	}
	return serveUntilStopped(ctx, a, d, opts, signals)
}

// sayReady prints the one line that programs wait for.
func sayReady(a *cli.App, d *Daemon) error {
	return a.Say(map[string]any{"ready": true, "url": d.Url, "pid": os.Getpid()}, "%s", "ready "+d.Url)
}

// untilStopped waits for the end: a first signal lets sessions finish, a second ends them, a third
// leaves them to the next daemon.
func untilStopped(ctx context.Context, a *cli.App, d *Daemon, signals <-chan os.Signal) error {
	asked := 0
	for {
		select {
		case <-d.Engine.Stopped():
			return nil
		case conf := <-d.reloads:
			return reloaded{conf}
		case err := <-d.Ran:
			d.Ran <- nil
			return err
		case sig := <-signals:
			asked++
			if asked > 2 {
				fmt.Fprintln(a.Err, "fairlead: exiting now; running sessions continue, and the next `fairlead up` adopts them")
				return nil
			}
			by := seam.Actor{Kind: "human", ID: "signal " + sig.String()}
			if err := d.Engine.Stop(ctx, by, asked == 2); err != nil {
				return err
			}
			sayStopping(ctx, a, d, asked)
		}
	}
}

// sayStopping says what is waited for, and how to avoid waiting.
func sayStopping(ctx context.Context, a *cli.App, d *Daemon, asked int) {
	view, err := d.Engine.Team(ctx)
	if err != nil {
		return // already over
	}
	var open []string
	for _, agent := range view.Agents {
		for _, s := range agent.Sessions {
			open = append(open, s.ID)
		}
	}
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
	conf, err := a.Load()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the fairlead program: %w", err)
	}
	words := []string{"up", "--no-browser", "--dir", a.Dir}
	if opts.Listen != "" {
		words = append(words, "--listen", opts.Listen)
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
	first, err := bufio.NewReader(ready).ReadString('\n')
	if err == nil {
		fmt.Fprint(a.Out, first)
		sayDisk(ctx, a, conf)
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
