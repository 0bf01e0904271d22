package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
)

// reloaded ends a daemon that is to start again, in the same process, with another configuration.
type reloaded struct{ source *config.Source }

// Error makes it an error.
func (reloaded) Error() string { return "the configuration was loaded again" }

// reload loads fairlead.yaml and checks it. If something changed, the goroutine of `fairlead up` gets the
// new configuration and starts the daemon again with it, exactly as after an upgrade: the shims keep the
// sessions, and the start records which agents are new, changed and removed. A change that an agent may have made
// is loaded only if want says that a person has confirmed it.
func (d *Daemon) reload(ctx context.Context, by change.Actor, want api.ReloadBody) ([]string, error) {
	is, err := d.seeGoverning(ctx) // the inbox shows a change that is refused
	if err != nil {
		return nil, err
	}
	source := config.ReadSource(d.Conf.Dir, lookupEnv)
	sum := source.Sum()
	switch confirmed := want.Governing != "" && (want.Over == "" || want.Over == is.Sum); {
	case confirmed && want.Governing != sum:
		return nil, &table.Refusal{
			Subject: config.FileName, Event: "reload", State: "changed again", Row: "E6",
			Reason: "it is not what you have confirmed any more; `fairlead inbox` shows what it is now",
		}
	case !confirmed && !is.MayObey(sum):
		return nil, notConfirmed(sum)
	}
	conf, err := source.Conf, source.Err
	if err == nil {
		err = app.Check(conf, cli.Drivers())
	}
	if err != nil {
		return nil, api.NewProblem(http.StatusUnprocessableEntity,
			"fairlead.yaml was not loaded, and the daemon keeps its configuration: %s", err)
	}
	now, err := d.Engine.Status.Team(ctx)
	if err != nil {
		return nil, err
	}
	if now.Stopping {
		return nil, &table.Refusal{
			Subject: "the team", Event: "reload", State: "stopping",
			Reason: "the daemon is stopping; the next `fairlead up` loads the file",
		}
	}
	cluster, err := d.clusterChanges()
	if err != nil {
		return nil, api.NewProblem(http.StatusUnprocessableEntity, "the daemon keeps its configuration: %s", err)
	}
	if is.Sum != sum {
		if err := d.Engine.Agents.Governing(ctx, by, team.ConfigConfirmed{Sum: sum, Runs: is.Runs}); err != nil {
			return nil, err
		}
	}
	changes := append(config.Changes(d.Conf, conf), cluster...)
	if len(changes) == 0 {
		d.choice.in.Store(source)
		return nil, d.keep()
	}
	select {
	case d.reloads <- source:
		return changes, nil
	default:
		return nil, &table.Refusal{
			Subject: "the team", Event: "reload", State: "reloading",
			Reason: "the daemon is loading the file already",
		}
	}
}

// serveUntilStopped runs one daemon after the other until one ends for another reason than a reload. If the
// daemon cannot start with a new configuration, it starts again with the one before.
func serveUntilStopped(ctx context.Context, a *cli.App, d *Daemon, opts UpOptions, signals <-chan os.Signal) error {
	for {
		err := untilStopped(ctx, a, d, signals)
		var again reloaded
		if errors.Is(err, errUnwritten) {
			_ = d.Close() // it misses the journal
			return err
		}
		if !errors.As(err, &again) {
			return errors.Join(err, d.Close())
		}
		next := &Daemon{
			Conf: again.source.Conf, choice: withSource(again.source), log: d.log, reloads: make(chan *config.Source, 1),
			beside: d.beside,
		}
		if opts.Listen != "" || d.Conf.Listen == next.Conf.Listen {
			if next.listener, err = duplicate(d.listener); err != nil {
				d.log.Warn("the port cannot stay open during the reload", "error", err)
			}
		}
		if err := d.Close(); err != nil {
			d.log.Error("the daemon with the previous configuration did not close correctly", "error", err)
		}
		before := d
		d.beside.head = d.Engine.Loop.Head()
		if d, err = openDaemon(ctx, next, opts.Listen); err == nil {
			continue
		}
		if errors.Is(err, errAsked) || before.beside.deposedBy(err) {
			return err
		}
		before.log.Error("the daemon could not start with the changed fairlead.yaml, and starts with the previous one", "error", err)
		if d, err = openDaemon(ctx,
			&Daemon{
				Conf: before.Conf, choice: before.choice, log: before.log, reloads: make(chan *config.Source, 1), beside: before.beside,
				reloadFault: err,
			}, strings.TrimPrefix(before.address, "http://")); err != nil {
			return err
		}
	}
}

// duplicate returns a second listener on the same port. The port stays open when the first is closed: who
// connects meanwhile waits for the second, instead of being refused.
func duplicate(listener net.Listener) (net.Listener, error) {
	tcp, ok := listener.(*net.TCPListener)
	if !ok {
		return nil, fmt.Errorf("the listener on %s is no TCP listener", listener.Addr())
	}
	file, err := tcp.File()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return net.FileListener(file)
}

// Reload makes the daemon load fairlead.yaml again, prints what changed, and returns when the daemon
// serves with it. On a terminal a person is asked about a change that an agent may have made.
func Reload(ctx context.Context, a *cli.App, want api.ReloadBody) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	client, err := a.Dial()
	if err != nil {
		return err
	}
	defer client.Close()
	done, err := client.Reload(ctx, want)
	if err != nil && want.Governing == "" && cli.CodeOf(err) == cli.ExitRefused && cli.Tty(a.In) && !a.JSON {
		if want.Governing = asked(ctx, a, client); want.Governing != "" {
			done, err = client.Reload(ctx, want)
		}
	}
	if err != nil {
		return err
	}
	if len(done.Changes) > 0 {
		if err := untilStarted(ctx, client, done); err != nil {
			return err
		}
		st, err := client.Status(ctx)
		if err != nil {
			return err
		}
		if st.ReloadFault != "" {
			return fmt.Errorf("the daemon could not start with the changed fairlead.yaml, and runs with the previous one: %s",
				st.ReloadFault)
		}
	}
	if a.JSON {
		return a.PrintJSON(done)
	}
	if len(done.Changes) == 0 {
		whose := ""
		if host, _ := IsHost(a); host { // then its own file was not read
			whose = "the leader's "
		}
		fmt.Fprintln(a.Out, whose+"fairlead.yaml has no changes")
	}
	for _, line := range done.Changes {
		fmt.Fprintln(a.Out, cli.Line(line, cli.ErrorWidth))
	}
	return nil
}

// asked shows a person the change that no person has confirmed; empty: there is none, or the person does not want it.
func asked(ctx context.Context, a *cli.App, client *apiclient.Client) (sum string) {
	items, err := client.Inbox(ctx)
	if err != nil {
		return "" // the refusal says what to do
	}
	for _, item := range items {
		if u := item.Unconfirmed; u != nil {
			printUnconfirmed(a, u)
			if a.Confirm("Obey the changed fairlead.yaml?", "nothing was loaded", "") == nil {
				return u.Sum
			}
		}
	}
	return ""
}

// restartMax bounds the wait for a daemon that starts again; a start takes less than a second, or longer
// with very many sessions.
const restartMax = 2 * time.Minute

// untilStarted waits for the first start of a daemon after a reload. The stream survives the restart; if it begins during the restart, the
// daemon before is closing, or no daemon answers yet. The error is a *leadLost if the daemon is that of another host.
func untilStarted(ctx context.Context, client *apiclient.Client, done api.Reloaded) error {
	waiting, stop := context.WithTimeout(ctx, restartMax)
	defer stop()
	for waiting.Err() == nil {
		ok, err := started(waiting, client, done)
		if ok || err != nil && !apiclient.Away(err) {
			return err
		}
		_ = cli.Pause(waiting, cli.DownPoll) // the loop ends with waiting
	}
	if ctx.Err() == nil {
		return fmt.Errorf("the daemon did not start again within %s; see .fairlead/log/daemon.log, and start it with `fairlead up`",
			restartMax)
	}
	return &cli.Coded{Code: cli.ExitCancelled, Err: errors.New("stopped waiting; the daemon starts again with the changed fairlead.yaml")}
}

// started reports whether a daemon has started; false without an error if ctx ended first.
func started(ctx context.Context, client *apiclient.Client, done api.Reloaded) (bool, error) {
	for ch, err := range client.Events(ctx,
		apiclient.EventsQuery{After: int64(done.Head), Entity: "team/team"}) { //nolint:gosec // a sequence fits
		if err != nil {
			return false, err
		}
		if ch.Trigger != "daemon_started" {
			continue
		}
		var body struct {
			Team struct {
				Leader string `json:"leader"`
			} `json:"team"`
		}
		if len(ch.Data) > 0 {
			err = json.Unmarshal(ch.Data, &body)
		}
		if now := body.Team.Leader; err == nil && done.Leader != "" && now != "" && now != done.Leader {
			err = &leadLost{was: done.Leader, now: now}
		}
		return err == nil, err
	}
	return false, nil
}

// leadLost says that another host leads since a reload began, and has not loaded the change.
type leadLost struct{ was, now string }

func (l *leadLost) Error() string {
	return fmt.Sprintf("%s lost the lead before it had loaded the changed %s, and %s leads the team with the earlier file. To load the change, write the same file on %s and run `fairlead reload` there; until both files are the same, %s cannot lead", l.was, config.FileName, l.now, l.now, l.was)
}
