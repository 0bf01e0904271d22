package main

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
	"time"

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/controller/seam"
)

type upOptions struct {
	listen    string
	detach    bool
	noBrowser bool
	verbose   bool
	plan      bool
}

func (a *app) upVerb() *cobra.Command {
	var opts upOptions
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the daemon: adopt running sessions and start agents",
		Long: `It starts Fairlead on this workspace, in the foreground. It locks the workspace, adopts every
session that outlived the last daemon, reads what was written into the agents' files meanwhile, and
only then starts agents.

When it is ready it prints one line on standard output: ready, and the address of Mission Control
with its token. Ctrl-C, SIGTERM or ` + "`fairlead down`" + ` end it: sessions finish first, and a second
signal ends them. If it is killed in any other way, the agents keep working and the next
` + "`fairlead up`" + ` adopts them.

It prints on standard error what it adopts and what it will do. --plan prints that and does nothing:
no change is journaled, no file written, no process touched. Each agent has a line (adopt, start,
leave at rest, withdraw, ask), and below it the evidence: + agrees with the journal, ! contradicts
it. If a daemon runs already, it says so.`,
		Example: `  fairlead up
  fairlead up --detach --no-browser
  fairlead up --plan`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.plan && opts.detach {
				return usage(cmd, errors.New("--plan starts nothing that could be left in the background with --detach; take one of the two"))
			}
			if opts.plan {
				return a.plan(cmd.Context())
			}
			if opts.detach {
				return a.upDetached(cmd.Context(), opts)
			}
			return a.up(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.listen, "listen", "", "address to serve on (default: listen in fairlead.yaml; port 0 picks one)")
	cmd.Flags().BoolVar(&opts.detach, "detach", false, "return when it serves, and go on in the background")
	cmd.Flags().BoolVar(&opts.noBrowser, "no-browser", false, "do not open Mission Control in a browser")
	cmd.Flags().BoolVarP(&opts.verbose, "verbose", "v", false, "log what is found and done")
	cmd.Flags().BoolVar(&opts.plan, "plan", false, "say what would be found again and done, and do nothing")
	return cmd
}

// logger writes for people on a terminal and in key=value form elsewhere.
func (a *app) logger(verbose bool) *slog.Logger {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelDebug
	}
	if tty(a.err) {
		return slog.New(tint.NewTextHandler(a.err, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: colourless()}))
	}
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level}))
}

// up runs the daemon until it is told to stop.
func (a *app) up(ctx context.Context, opts upOptions) error {
	conf, err := a.load()
	if err != nil {
		return err
	}
	// From here on signals are ours: one that comes during the start stops what was started.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE) // a terminal that goes away takes nobody with it

	d, err := openDaemon(ctx, conf, opts.listen, slog.New(recoveryLog{a.logger(opts.verbose).Handler(), a}))
	if err != nil {
		return err
	}
	if err := a.sayReady(d); err != nil {
		return errors.Join(err, d.close())
	}
	if !opts.noBrowser && !a.json && tty(a.out) {
		openBrowser(d.url)
	}
	return errors.Join(a.untilStopped(ctx, d, signals), d.close())
}

// sayReady prints the one line that programs wait for.
func (a *app) sayReady(d *daemon) error {
	if a.json {
		return a.printJSON(map[string]any{"ready": true, "url": d.url, "pid": os.Getpid()})
	}
	_, err := fmt.Fprintln(a.out, "ready "+d.url)
	return err
}

// untilStopped waits for the end: a first signal lets sessions finish, a second ends them,
// a third leaves them to the next daemon.
func (a *app) untilStopped(ctx context.Context, d *daemon, signals <-chan os.Signal) error {
	asked := 0
	for {
		select {
		case <-d.engine.Stopped():
			return nil
		case err := <-d.ran:
			d.ran <- nil
			return err
		case sig := <-signals:
			asked++
			if asked > 2 {
				fmt.Fprintln(a.err, "fairlead: going now; what still runs goes on, and the next `fairlead up` finds it")
				return nil
			}
			by := seam.Actor{Kind: "human", ID: "signal " + sig.String()}
			if err := d.engine.Stop(ctx, by, asked == 2); err != nil {
				return err
			}
			a.sayStopping(ctx, d, asked)
		}
	}
}

// sayStopping says what is waited for, and how not to.
func (a *app) sayStopping(ctx context.Context, d *daemon, asked int) {
	view, err := d.engine.Team(ctx)
	if err != nil {
		return // it is over already
	}
	var open []string
	for _, agent := range view.Agents {
		if agent.Session != nil {
			open = append(open, agent.Session.ID)
		}
	}
	if len(open) == 0 || a.json {
		return
	}
	if asked == 1 {
		fmt.Fprintf(a.err, "fairlead: waiting for %s to finish; once more ends them now\n", strings.Join(open, ", "))
		return
	}
	fmt.Fprintf(a.err, "fairlead: ending %s\n", strings.Join(open, ", "))
}

// upDetached starts the same daemon in a session of its own, and returns when it serves.
func (a *app) upDetached(ctx context.Context, opts upOptions) error {
	if _, err := a.load(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find our own program: %w", err)
	}
	words := []string{"up", "--no-browser", "--dir", a.dir}
	if opts.listen != "" {
		words = append(words, "--listen", opts.listen)
	}
	if a.json {
		words = append(words, "--json")
	}
	logFile, logPath, err := a.daemonLog()
	if err != nil {
		return err
	}
	defer logFile.Close()
	began, err := logFile.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self, words...) //nolint:gosec // ourselves
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
		fmt.Fprint(a.out, first)
		return cmd.Process.Release()
	}
	_ = cmd.Wait() // why it ended is in its log
	said, rerr := os.ReadFile(logPath)
	if rerr != nil || int64(len(said)) <= began {
		return fmt.Errorf("the daemon ended before it was ready; see %s", logPath)
	}
	text := strings.TrimPrefix(strings.TrimSpace(string(said[began:])), "fairlead: ")
	return &coded{max(cmd.ProcessState.ExitCode(), exitFailed), errors.New(text)}
}

// daemonLog is where a daemon in the background says what it has to say.
func (a *app) daemonLog() (*os.File, string, error) {
	dir := a.dir + "/.fairlead/log"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", fmt.Errorf("make the folder of the log: %w", err)
	}
	path := dir + "/daemon.log"
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600) //nolint:gosec // our own folder
	if err != nil {
		return nil, "", fmt.Errorf("open the daemon's log: %w", err)
	}
	return file, path, nil
}
