package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/examples"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/shim"
	"github.com/fairlead-dev/fairlead/view"
)

type demoOptions struct {
	headless bool
	length   time.Duration
	keep     bool
	listen   string
}

func (a *app) demoVerb() *cobra.Command {
	var opts demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Try Fairlead with scripted agents in a scratch repository",
		Long: `It makes a scratch git repository, starts Mission Control, and runs scripted agents that do real
work there: they write files, run tests and commit. Three of them work side by side, and one of
those fails at times. Two talk in a channel, review each other's work, and answer you. One leads a
crew of eight. A workflow writes notes, runs tests, and then waits for your approval in the inbox.
It needs git, and no account, key or network.

--headless with --for runs it for a while without a page, then stops and prints what happened; with
--json as one line.`,
		Example: `  fairlead demo
  fairlead demo --headless --for 20s --json`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.headless && opts.length == 0 {
				opts.length = 20 * time.Second
			}
			return a.demo(cmd.Context(), opts)
		},
	}
	cmd.Flags().BoolVar(&opts.headless, "headless", false, "no page and no browser")
	cmd.Flags().DurationVar(&opts.length, "for", 0, "stop after this time (default: with Ctrl-C; headless 20s)")
	cmd.Flags().BoolVar(&opts.keep, "keep", false, "leave the scratch repository behind")
	cmd.Flags().StringVar(&opts.listen, "listen", "127.0.0.1:0", "address to serve on")
	return cmd
}

// The demo's run and its channel, short enough to type.
const (
	demoRun     = "release"
	demoChannel = "review"
)

func (a *app) demo(ctx context.Context, opts demoOptions) (err error) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	dir, err := scratchRepository(ctx)
	if err != nil {
		return err
	}
	a.dir = dir
	if !opts.keep {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	conf, err := config.Load(dir, os.LookupEnv)
	if err != nil {
		return fmt.Errorf("the demo's own configuration: %w", err)
	}
	d, err := openDaemon(ctx, conf, opts.listen, a.logger(false))
	if err != nil {
		return err
	}
	began := time.Now()
	if err := beginDemo(ctx, d, dir); err != nil {
		return errors.Join(err, d.close())
	}
	a.sayDemo(d, opts)
	endDay := demoDay(ctx, d.engine, opts.headless)
	if err := errors.Join(demoRuns(ctx, d, opts, signals), endDay()); err != nil {
		return errors.Join(err, d.close())
	}
	if !a.json {
		fmt.Fprintln(a.err, "stopping: ending what still runs")
	}
	if err := stopNow(ctx, d); err != nil {
		return errors.Join(err, d.close())
	}
	report, err := demoReport(ctx, d, dir, time.Since(began))
	if err := errors.Join(err, d.close()); err != nil {
		return err
	}
	return a.printReport(report, opts.keep)
}

// beginDemo gives everybody something to do: who is in the channel talks, the others work.
func beginDemo(ctx context.Context, d *daemon, dir string) error {
	by := seam.Actor{Kind: "human", ID: "demo"}
	talk := map[string]bool{}
	for _, c := range d.conf.Channels {
		for _, name := range c.Agents {
			talk[name] = true
		}
	}
	if _, err := d.engine.Say(ctx, by, demoChannel, "Please begin with the library.", ""); err != nil {
		return err
	}
	for _, agent := range d.conf.Agents {
		if talk[agent.Name] {
			continue
		}
		if _, err := d.engine.Command(ctx, by, agent.Name, control.WordContinuous, "started by fairlead demo"); err != nil {
			return err
		}
	}
	if _, err := d.engine.Summon(ctx, by); err != nil {
		return err
	}
	release := view.RunFlags{Workflow: filepath.Join(dir, "release.yaml"), RunID: demoRun, PauseForHumans: true}
	_, err := d.engine.StartRun(ctx, by, release)
	return err
}

// demoFiles puts the examples into one folder. Where two have a file of the same name, the
// first of them counts: they have the same rules of git, and the same script that commits.
func demoFiles(dir string) error {
	for _, from := range []struct {
		files embed.FS
		name  string
	}{{examples.Demo, "demo"}, {examples.Review, "review"}, {examples.Trio, "trio"}, {examples.Crew, "crew"}} {
		tree, err := fs.Sub(from.files, from.name)
		if err != nil {
			return err
		}
		err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
			target := filepath.Join(dir, filepath.FromSlash(name))
			switch {
			case err != nil:
				return err
			case entry.IsDir():
				return os.MkdirAll(target, 0o755) //nolint:gosec // a repository like any other
			case exists(target):
				return nil
			}
			text, err := fs.ReadFile(tree, name)
			if err != nil {
				return err
			}
			return os.WriteFile(target, text, 0o644) //nolint:gosec // the same
		})
		if err != nil {
			return fmt.Errorf("copy the examples: %w", err)
		}
	}
	return nil
}

// scratchRepository is a copy of the examples with a git repository of its own.
func scratchRepository(ctx context.Context) (string, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return "", fmt.Errorf("the demo's agents commit what they do, and there is no git here: install git, then try again")
	}
	dir, err := os.MkdirTemp("", "fairlead-demo-")
	if err != nil {
		return "", fmt.Errorf("make a scratch folder: %w", err)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if err := demoFiles(dir); err != nil {
		return "", err
	}
	for _, words := range [][]string{
		{"init", "-q"},
		{"add", "."},
		{
			"-c", "user.name=you", "-c", "user.email=you@example.invalid", "-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null",
			"commit", "-q", "-m", "Begin with six agents and an empty library",
		},
	} {
		cmd := exec.CommandContext(ctx, "git", words...) //nolint:gosec // our own words
		cmd.Dir = dir
		cmd.Env = cleanGit(os.Environ())
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("git %s: %w: %s", words[0], err, out)
		}
	}
	return dir, nil
}

// cleanGit keeps a git that runs us (a hook, an alias) from pointing our git elsewhere.
func cleanGit(env []string) []string {
	var kept []string
	for _, pair := range env {
		if !strings.HasPrefix(pair, "GIT_") {
			kept = append(kept, pair)
		}
	}
	return kept
}

func (a *app) sayDemo(d *daemon, opts demoOptions) {
	if opts.headless || a.json {
		return
	}
	fmt.Fprintf(a.out, "ready %s\n", d.url)
	fmt.Fprintf(a.out, `
Three agents work in %[1]s, two talk about what one of them writes,
and one summons a team of eight. Mission Control is at the address above.

Try, in another terminal:
  fairlead watch %[3]s --dir %[1]s  the two that talk
  fairlead channel say %[3]s --dir %[1]s 'how far are you?'
  fairlead crew --dir %[1]s        the eight, and who of them is awake
  fairlead channel say crew --dir %[1]s 'Mira, where is the key?'
  fairlead ps --dir %[1]s          who does what
  fairlead why flaky --dir %[1]s   the evidence for it
  fairlead stop coder --dir %[1]s  it finishes its session first
  fairlead watch coder --dir %[1]s what it says
  fairlead approve %[2]s approve --dir %[1]s   the release waits for you
  git -C %[1]s log --oneline       what came of it

(from a checkout: go run ./cmd/fairlead in place of fairlead.) Or be rude: kill -9 an agent
and see what the page says. Ctrl-C ends it all.
`, d.conf.Dir, demoRun, demoChannel)
	openBrowser(d.url)
}

// demoRuns waits for the end of the demo: its time, a signal, or a stop from elsewhere.
func demoRuns(ctx context.Context, d *daemon, opts demoOptions, signals <-chan os.Signal) error {
	var over <-chan time.Time
	if opts.length > 0 {
		timer := time.NewTimer(opts.length)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-signals:
	case <-d.engine.Stopped():
	case <-ctx.Done():
		return ctx.Err()
	case err := <-d.ran:
		d.ran <- nil
		return err
	}
	return nil
}

func stopNow(ctx context.Context, d *daemon) error {
	if err := d.engine.Stop(ctx, seam.Actor{Kind: "human", ID: "demo"}, true); err != nil {
		return err
	}
	select {
	case <-d.engine.Stopped():
		return nil
	case err := <-d.ran:
		d.ran <- nil
		return err
	}
}

// demoAnswer is what `fairlead demo --json` says at the end.
type demoAnswer struct {
	ForMS   int64       `json:"for_ms"`
	Dir     string      `json:"dir"`
	Commits int         `json:"commits"` // by agents
	Changes uint64      `json:"changes"` // in the journal
	Strays  int         `json:"strays"`  // processes left behind; 0 is the only right answer
	Said    uint64      `json:"said"`    // in the channel
	Turns   uint64      `json:"turns"`   // in the channel
	Team    demoTeam    `json:"team"`
	Agents  []demoAgent `json:"agents"`
}

type demoAgent struct {
	Name     string         `json:"name"`
	Sessions map[string]int `json:"sessions"` // by outcome, the newest 20
	Bytes    int64          `json:"output_bytes"`
	CostUSD  float64        `json:"cost_usd"`
	Current  string         `json:"current_state"`
	Desired  string         `json:"desired_state"`
}

func demoReport(ctx context.Context, d *daemon, dir string, took time.Duration) (demoAnswer, error) {
	answer := demoAnswer{ForMS: took.Milliseconds(), Dir: dir}
	view, err := d.engine.Team(ctx)
	if err != nil {
		return answer, err
	}
	answer.Changes = view.Head
	for _, agent := range view.Agents {
		why, err := d.engine.Why(ctx, agent.Name)
		if err != nil {
			return answer, err
		}
		one := demoAgent{Name: agent.Name, Sessions: map[string]int{}, CostUSD: agent.UsageToday.CostUSD, Current: agent.CurrentState, Desired: agent.DesiredState}
		for _, s := range why.Sessions {
			one.Sessions[s.Outcome]++
			one.Bytes += s.Bytes
		}
		answer.Agents = append(answer.Agents, one)
	}
	channel, err := d.engine.Channel(ctx, demoChannel)
	if err != nil {
		return answer, err
	}
	answer.Said, answer.Turns = channel.Messages, channel.Turn
	if answer.Team, err = teamReport(ctx, d.engine); err != nil {
		return answer, err
	}
	strays, err := shim.Strays(dir)
	if err != nil {
		return answer, err
	}
	answer.Strays = len(strays)
	count := exec.CommandContext(ctx, "git", "rev-list", "--count", "HEAD")
	count.Dir = dir
	count.Env = cleanGit(os.Environ())
	out, err := count.Output()
	if err != nil {
		return answer, fmt.Errorf("count the commits: %w", err)
	}
	all, err := strconv.Atoi(strings.TrimSpace(string(out)))
	answer.Commits = all - 1
	return answer, err
}

func (a *app) printReport(r demoAnswer, kept bool) error {
	if a.json {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "\nin %d s: %d commits, %d changes in the journal, %d processes left behind\n", r.ForMS/1000, r.Commits, r.Changes, r.Strays)
	fmt.Fprintf(a.out, "  channel %s: %d messages in %d turns\n", demoChannel, r.Said, r.Turns)
	fmt.Fprintf(a.out, "  team: %d were summoned, in %d sessions of the lead\n", r.Team.Summoned, r.Team.Sessions)
	for _, agent := range r.Agents {
		fmt.Fprintf(a.out, "  %-8s %v, %d bytes said, $%.3f\n", agent.Name, agent.Sessions, agent.Bytes, agent.CostUSD)
	}
	if kept {
		fmt.Fprintln(a.out, "the repository is in "+r.Dir)
	}
	return nil
}
