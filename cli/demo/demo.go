package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/examples"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/read/view"
)

// DemoOptions are the flags of `demo`.
type DemoOptions struct {
	Headless bool
	Length   time.Duration
	Keep     bool
	Listen   string
}

// The demo's run and its channel have short names to type.
const (
	demoRun     = "release"
	DemoChannel = "review"
)

// Demo runs a team on a scratch repository until the person ends it.
func Demo(ctx context.Context, a *cli.App, opts DemoOptions) (err error) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	dir, err := ScratchRepository(ctx)
	if err != nil {
		return err
	}
	a.Dir = dir
	if !opts.Keep {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	conf, err := config.Load(dir, os.LookupEnv)
	if err != nil {
		return fmt.Errorf("the demo's own configuration: %w", err)
	}
	d, err := daemon.OpenDaemon(ctx, conf, opts.Listen, a.Logger(false))
	if err != nil {
		return err
	}
	began := time.Now()
	if err := beginDemo(ctx, d, dir); err != nil {
		return errors.Join(err, d.Close())
	}
	endTasks, err := beginTasks(ctx, a)
	if err != nil {
		return errors.Join(err, d.Close())
	}
	sayDemo(a, d, opts)
	haste := time.Duration(1)
	if opts.Headless {
		haste = demoHaste
	}
	endDay := meanwhile(ctx, func(ctx context.Context) error { return liveDay(ctx, d.Engine, haste) })
	err = errors.Join(demoRuns(ctx, d, opts, signals), endDay())
	given, fault := endTasks()
	if err := errors.Join(err, fault); err != nil {
		return errors.Join(err, d.Close())
	}
	if !a.JSON {
		fmt.Fprintln(a.Err, "stopping: ending what still runs")
	}
	if err := stopNow(ctx, d); err != nil {
		return errors.Join(err, d.Close())
	}
	report, err := demoReport(ctx, d, dir, time.Since(began))
	report.Tasks = given
	if err := errors.Join(err, d.Close()); err != nil {
		return err
	}
	return printReport(a, report, opts.Keep)
}

// beginDemo starts the agents: those in the channel talk, those of the tasks wait for them, the others work.
func beginDemo(ctx context.Context, d *daemon.Daemon, dir string) error {
	by := change.Actor{Kind: "human", ID: "demo"}
	rest := map[string]bool{"ada": true, "bob": true}
	for _, c := range d.Conf.Channels {
		for _, name := range c.Agents {
			rest[name] = true
		}
	}
	if _, err := d.Engine.Channels.Say(ctx, by, DemoChannel, "Please begin with the library.", ""); err != nil {
		return err
	}
	for _, agent := range d.Conf.Agents {
		if rest[agent.Name] {
			continue
		}
		if _, err := d.Engine.Agents.Command(ctx, by, agent.Name, control.WordContinuous, "started by fairlead demo"); err != nil {
			return err
		}
	}
	if _, err := d.Engine.Crew.Summon(ctx, by); err != nil {
		return err
	}
	release := view.RunFlags{Workflow: filepath.Join(dir, "release.yaml"), RunID: demoRun, PauseForHumans: true}
	_, err := d.Engine.Runs.StartRun(ctx, by, release)
	return err
}

// demoFiles copies the examples into one folder. If two have a file of the same name, the first one
// counts: they have the same .gitignore and the same commit script.
func demoFiles(dir string) error {
	for _, example := range []string{"demo", "review", "trio", "crew", "tasks"} {
		tree, err := fs.Sub(examples.Files, example)
		if err != nil {
			return err
		}
		err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
			target := filepath.Join(dir, filepath.FromSlash(name))
			switch {
			case err != nil:
				return err
			case entry.IsDir():
				return os.MkdirAll(target, 0o755) //nolint:gosec // readable like any repository
			case cli.Exists(target):
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

// ScratchRepository copies the examples into a new git repository.
func ScratchRepository(ctx context.Context) (string, error) {
	if err := needsGit(); err != nil {
		return "", err
	}
	dir, err := scratchFolder()
	if err != nil {
		return "", err
	}
	if err := demoFiles(dir); err != nil {
		return "", err
	}
	if err := repository(ctx, dir, "Begin with eight agents and an empty library"); err != nil {
		return "", err
	}
	return dir, git(ctx, dir, "branch", "greeting") // on which the tasks land: the other agents work on the branch that is checked out
}

func needsGit() error {
	if _, err := exec.LookPath("git"); err != nil {
		return errors.New("the demo's agents commit what they do, and there is no git here: install git, then try again")
	}
	return nil
}

// scratchFolder is a new folder without links in its path.
func scratchFolder() (string, error) {
	dir, err := os.MkdirTemp("", "fairlead-demo-")
	if err != nil {
		return "", fmt.Errorf("make a scratch folder: %w", err)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return dir, nil
}

// repository makes a folder with files a git repository, with one commit.
func repository(ctx context.Context, dir, subject string) error {
	for _, words := range [][]string{
		{"init", "-q"},
		{"add", "."},
		{
			"-c", "user.name=you", "-c", "user.email=you@example.invalid", "-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null",
			"commit", "-q", "-m", subject,
		},
		{"config", "user.name", "you"},
		{"config", "user.email", "you@example.invalid"},
	} {
		if err := git(ctx, dir, words...); err != nil {
			return err
		}
	}
	return nil
}

func git(ctx context.Context, dir string, words ...string) error {
	cmd := exec.CommandContext(ctx, "git", words...) //nolint:gosec // fixed arguments
	cmd.Dir = dir
	cmd.Env = cleanGit(os.Environ())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", words[0], err, out)
	}
	return nil
}

// cleanGit removes variables of a git process that runs this one (a hook, an alias), which would
// point this git elsewhere.
func cleanGit(env []string) []string {
	var kept []string
	for _, pair := range env {
		if !strings.HasPrefix(pair, "GIT_") {
			kept = append(kept, pair)
		}
	}
	return kept
}

func sayDemo(a *cli.App, d *daemon.Daemon, opts DemoOptions) {
	if opts.Headless || a.JSON {
		return
	}
	fmt.Fprintf(a.Out, "ready %s\n", d.Url)
	fmt.Fprintf(a.Out, `
Two agents do three tasks in %[1]s, each in a folder of its own.
One task comes back with a comment, one with a conflict, and two then wait for you.
Beside them three agents work, two discuss what one of them writes, and one summons
a team of eight. Mission Control is at the address above.

Try, in another terminal:
  fairlead tasks --dir %[1]s       the three tasks; which one needs you
  fairlead diff T1 --dir %[1]s     what the first has changed
  fairlead merge T1 --dir %[1]s    lands it on the branch greeting
  fairlead watch %[3]s --dir %[1]s  the two that talk
  fairlead channel say %[3]s --dir %[1]s 'how far are you?'
  fairlead crew --dir %[1]s        the eight, and who of them is awake
  fairlead channel say crew --dir %[1]s 'Mira, where is the key?'
  fairlead ps --dir %[1]s          what each agent does
  fairlead why flaky --dir %[1]s   the evidence for it
  fairlead stop coder --dir %[1]s  it finishes its session first
  fairlead watch coder --dir %[1]s its output
  fairlead approve %[2]s approve --dir %[1]s   the release waits for you
  git -C %[1]s log --oneline       the commits of the agents

(from a checkout: go run ./cmd/fairlead in place of fairlead.) You can also kill -9 an agent
and see what the page shows. Ctrl-C ends the demo.
`, d.Conf.Dir, demoRun, DemoChannel)
	daemon.OpenSignedIn(d, "now")
}

// demoRuns waits for the end of the demo: its time, a signal, or a stop by another command.
func demoRuns(ctx context.Context, d *daemon.Daemon, opts DemoOptions, signals <-chan os.Signal) error {
	var over <-chan time.Time
	if opts.Length > 0 {
		timer := time.NewTimer(opts.Length)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-signals:
	case <-d.Engine.Loop.Stopped():
	case <-ctx.Done():
		return ctx.Err()
	case err := <-d.Ran:
		d.Ran <- nil
		return err
	}
	return nil
}

func stopNow(ctx context.Context, d *daemon.Daemon) error {
	if err := d.Engine.Agents.Stop(ctx, change.Actor{Kind: "human", ID: "demo"}, true); err != nil {
		return err
	}
	select {
	case <-d.Engine.Loop.Stopped():
		return nil
	case err := <-d.Ran:
		d.Ran <- nil
		return err
	}
}

// DemoAnswer is what `fairlead demo --json` prints at the end.
type DemoAnswer struct {
	ForMS   int64       `json:"for_ms"`
	Dir     string      `json:"dir"`
	Commits int         `json:"commits"` // by agents
	Changes uint64      `json:"changes"` // in the journal
	Strays  int         `json:"strays"`  // processes left behind; anything but 0 is a bug
	Said    uint64      `json:"said"`    // in the channel
	Turns   uint64      `json:"turns"`   // in the channel
	Tasks   []*demoTask `json:"tasks"`
	Team    demoTeam    `json:"team"`
	Agents  []demoAgent `json:"agents"`
}

type demoAgent struct {
	Name     string         `json:"name"`
	Sessions map[string]int `json:"sessions"`       // by outcome, the newest 20
	Total    int            `json:"sessions_total"` // all of them
	Bytes    int64          `json:"output_bytes"`
	CostUSD  float64        `json:"cost_usd"`
	Current  string         `json:"current_state"`
	Desired  string         `json:"desired_state"`
}

func demoReport(ctx context.Context, d *daemon.Daemon, dir string, took time.Duration) (DemoAnswer, error) {
	answer := DemoAnswer{ForMS: took.Milliseconds(), Dir: dir}
	view, err := d.Engine.Status.Team(ctx)
	if err != nil {
		return answer, err
	}
	answer.Changes = view.Head
	for _, agent := range view.Agents {
		why, err := d.Engine.Status.Why(ctx, agent.Name)
		if err != nil {
			return answer, err
		}
		one := demoAgent{
			Name: agent.Name, Sessions: map[string]int{}, CostUSD: agent.UsageToday.CostUSD, Current: agent.CurrentState,
			Desired: agent.DesiredState,
		}
		if len(why.Sessions) > 0 {
			_, number, _ := strings.Cut(strings.TrimPrefix(why.Sessions[0].ID, agent.Name), "-") // they are numbered from 1
			if one.Total, err = strconv.Atoi(number); err != nil {
				return answer, fmt.Errorf("the number of the session %s: %w", why.Sessions[0].ID, err)
			}
		}
		for _, s := range why.Sessions {
			one.Sessions[s.Outcome]++
			one.Bytes += s.Bytes
		}
		answer.Agents = append(answer.Agents, one)
	}
	channel, err := d.Engine.Channels.Channel(ctx, DemoChannel)
	if err != nil {
		return answer, err
	}
	answer.Said, answer.Turns = channel.Messages, channel.Turn
	if answer.Team, err = teamReport(ctx, d.Engine); err != nil {
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

// sessionWords says how many sessions an agent had and how they ended. Only the newest are known by their outcome.
func sessionWords(agent demoAgent) string {
	known := 0
	var parts []string
	for _, outcome := range slices.Sorted(maps.Keys(agent.Sessions)) {
		known += agent.Sessions[outcome]
		parts = append(parts, fmt.Sprintf("%d %s", agent.Sessions[outcome], cmp.Or(outcome, "open")))
	}
	parts = append(parts, fmt.Sprintf("%d bytes said", agent.Bytes))
	text := cli.HowMany(agent.Total, "session", "sessions")
	switch {
	case agent.Total == 0:
		return text
	case known < agent.Total:
		return fmt.Sprintf("%s; of the newest %d: %s", text, known, strings.Join(parts, ", "))
	}
	return text + ": " + strings.Join(parts, ", ")
}

func printReport(a *cli.App, r DemoAnswer, kept bool) error {
	if a.JSON {
		return a.PrintJSON(r)
	}
	fmt.Fprintf(a.Out, "\nin %d s: %s, %s in the journal, %s left behind\n", r.ForMS/1000, cli.HowMany(r.Commits, "commit", "commits"),
		cli.HowMany(r.Changes, "change", "changes"), cli.HowMany(r.Strays, "process", "processes"))
	for _, t := range r.Tasks {
		fmt.Fprintln(a.Out, "  task "+cli.Line(t.words(), cli.ErrorWidth))
	}
	fmt.Fprintf(a.Out, "  channel %s: %s in %s\n", DemoChannel, cli.HowMany(r.Said, "message", "messages"),
		cli.HowMany(r.Turns, "turn", "turns"))
	fmt.Fprintf(a.Out, "  team: %s summoned, in %s of the lead\n", cli.HowMany(r.Team.Summoned, "agent", "agents"),
		cli.HowMany(r.Team.Sessions, "session", "sessions"))
	for _, agent := range r.Agents {
		fmt.Fprintf(a.Out, "  %-8s %s, %s today\n", agent.Name, sessionWords(agent), cli.Money(agent.CostUSD))
	}
	if kept {
		fmt.Fprintln(a.Out, "the repository is in "+r.Dir)
	}
	return nil
}
