package hosts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/read/view"
)

const (
	textMax   = 200 // characters of a label or an address
	whyMax    = 400 // characters of the reason for a host's state
	lateMax   = 800
	lateShown = 5 // late reports of a host, the newest ones; --json has more
)

// Invite asks the daemon for an invitation, and prints what to type on the other machine.
func Invite(ctx context.Context, a *cli.App, client *apiclient.Client, labels []string, engine bool) error {
	if err := checkLabels(labels); err != nil {
		return err
	}
	var given []api.HostLabel
	for _, label := range labels {
		given = append(given, api.HostLabel(label))
	}
	is, err := client.Invite(ctx, given, engine)
	if err != nil {
		return cli.Faulty(err)
	}
	return a.Show(is, func() error {
		where, flags := "an empty folder or a clone of this repository", ""
		if engine {
			where, flags = "a clone of this repository", " --engine --listen ADDRESS:PORT"
		}
		fmt.Fprintf(a.Out, "This invitation is for one host of team %s, until %s. On the other machine, in %s:\n\n", is.Team,
			cli.Clock(is.ExpiresAt), where)
		fmt.Fprintf(a.Out, "  fairlead host join %s%s\n  fairlead up\n", is.Token, flags)
		if engine {
			fmt.Fprintf(a.Out,
				"\nADDRESS:PORT is where the other engine hosts reach that machine, such as 192.168.1.7:4222. It listens there, and on the next port.\n")
		}
		if is.Loopback {
			fmt.Fprintf(a.Out, "\nOnly this machine reaches %s. "+otherAddress+"\n", is.Address)
		}
		return nil
	})
}

const otherAddress = "For other machines: `fairlead cluster listen ADDRESS:4222`."

// List prints the hosts of the team.
func List(ctx context.Context, a *cli.App, client *cli.Reader) error {
	all, err := client.Hosts(ctx)
	if err != nil {
		return err
	}
	all.Past = client.Past
	return a.Show(all, func() error {
		if !all.On {
			_, err := fmt.Fprintln(a.Out, "This team runs on this machine alone. `fairlead cluster init` lets other machines join.")
			return err
		}
		return printHosts(a, all)
	})
}

func printHosts(a *cli.App, all view.Hosts) error {
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "HOST\tSTATE\tSESSIONS\tLEASE\tLABELS\tVERSION\tADDRESS\tWHY")
	for i := range all.Hosts {
		h := &all.Hosts[i]
		lease := ""
		if h.LeaseAgeMS >= 0 && !h.Leader && h.State != string(host.Left) {
			lease = cli.Ago(time.Duration(h.LeaseAgeMS) * time.Millisecond)
		}
		fmt.Fprintf(w, "%s\t%s\t%d/%d", cli.Line(h.Name, textMax), cli.Line(h.State, textMax), len(h.Sessions), h.Capacity)
		for _, text := range []string{lease, strings.Join(h.Labels, ","), h.Version, h.Address} {
			fmt.Fprintf(w, "\t%s", cli.OrDash(cli.Line(text, textMax)))
		}
		fmt.Fprintf(w, "\t%s\n", cli.OrDash(cli.Line(h.Why, whyMax)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var engines []string
	for i := range all.Hosts {
		if h := &all.Hosts[i]; h.Engine && h.State != string(host.Left) {
			engines = append(engines, cli.Line(h.Name, textMax))
		}
	}
	if all.Replicated {
		fmt.Fprintf(a.Out, "The journal is replicated by the engine hosts %s.\n%s", strings.Join(engines, ", "), copies(all))
	} else if all.Unreplicated != nil {
		fmt.Fprintln(a.Out, cli.Line(all.Unreplicated.Why, lateMax))
	}
	if all.Mixed != "" {
		fmt.Fprintln(a.Out, cli.Plain(all.Mixed))
	}
	for i := range all.Hosts {
		for _, left := range all.Hosts[i].Left {
			fmt.Fprintln(a.Out, cli.Plain(left))
		}
	}
	for _, s := range all.Waiting {
		fmt.Fprintf(a.Out, "%s %s\n", cli.Line(s.Session, textMax), cli.Line(s.Why, textMax))
	}
	for i := range all.Hosts {
		h := &all.Hosts[i]
		for _, l := range h.Late[max(0, len(h.Late)-lateShown):] {
			fmt.Fprintf(a.Out, "%s\n", cli.Line(l.Words(h.Name), lateMax))
		}
	}
	return nil
}

// copies says where the copies of a replicated journal are, and whether they are in sync; empty: that is not known now.
func copies(all view.Hosts) string {
	var on, behind []string
	for _, c := range all.Copies {
		on = append(on, cli.Line(c.Host, textMax))
		switch {
		case c.InSync:
		case c.Lacks == 0:
			behind = append(behind, fmt.Sprintf("the copy on %s does not answer", cli.Line(c.Host, textMax)))
		default:
			behind = append(behind,
				fmt.Sprintf("the copy on %s lacks %s, or does not answer", cli.Line(c.Host, textMax),
					cli.HowMany(int(c.Lacks), "message", "messages"))) //nolint:gosec // a stream has fewer than 2^63
		}
	}
	switch {
	case len(on) == 0:
		return ""
	case len(behind) == 0:
		return fmt.Sprintf("Its copies on %s are in sync.\n", strings.Join(on, ", "))
	}
	return fmt.Sprintf("Its copies are on %s: %s.\n", strings.Join(on, ", "), strings.Join(behind, "; "))
}

// Drain lets a host finish its sessions.
func Drain(ctx context.Context, a *cli.App, client *apiclient.Client, name string) error {
	done, err := client.DrainHost(ctx, name)
	if err != nil {
		return cli.Faulty(err)
	}
	return a.Say(done, "%s gets no new session, and leaves when its last session has ended; `fairlead hosts` shows its state",
		cli.Plain(name))
}

// Remove takes a host out of the team, after a question.
func Remove(ctx context.Context, a *cli.App, client *apiclient.Client, name string, yes bool) error {
	all, err := client.Hosts(ctx)
	if err != nil {
		return err
	}
	if at := slices.IndexFunc(all.Hosts, func(h view.Host) bool { return h.Name == name }); at >= 0 && !yes {
		if err := a.Confirm(removes(&all.Hosts[at])+" Remove it?", "nothing was removed",
			"pass --yes to remove without confirmation"); err != nil {
			return err
		}
	}
	done, err := client.RemoveHost(ctx, name)
	if err != nil {
		return cli.Faulty(err)
	}
	return a.Say(done, "%s is removed; it needs a new invitation to join again", cli.Plain(name))
}

const (
	leadWithin = time.Minute // for a new leader: its claim, a read of the journal, and hosts that connect to it

	// A host that has not claimed the lead when this is over is asked again: another one has claimed the lease, since it was silent.
	leadAskAgain = time.Duration(host.LeaderSilence) + 3*time.Second
)

// Lead lets another engine host lead, and waits until it does.
func Lead(ctx context.Context, a *cli.App, name string) error {
	return lead(ctx, a, name, leadAskAgain)
}

func lead(ctx context.Context, a *cli.App, name string, askAgain time.Duration) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	client, err := a.Dial()
	if err != nil {
		return err
	}
	_, err = client.Lead(ctx, name)
	_ = client.Close() // nothing more is asked on it
	if err != nil {
		return cli.Faulty(err)
	}
	asked, cannot := time.Now(), error(nil)
	leads := func(client *apiclient.Client, all view.Hosts) bool {
		if all.Leader != name && time.Since(asked) > askAgain {
			asked = time.Now()
			_, cannot = client.Lead(ctx, name) // a host that cannot lead now may be able to in a moment
		}
		return all.Leader == name
	}
	err = become(ctx, a, leadWithin, leads,
		fmt.Sprintf("host %s leads as soon as it has claimed the leader's lease", name),
		fmt.Sprintf("host %s does not lead within %s; `fairlead hosts` says which host does", name, leadWithin))
	if err != nil {
		return errors.Join(err, cannot)
	}
	return a.Say(map[string]string{"leader": name}, "%s leads the team", name)
}

// become waits until the hosts are as they are to be. Meanwhile the daemon here may end and start again. stopped says what happens
// if a person waits no longer, and late what to do when the time is over.
func become(ctx context.Context, a *cli.App, within time.Duration, are func(*apiclient.Client, view.Hosts) bool,
	stopped, late string,
) error {
	waiting, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for cli.Pause(waiting, cli.DownPoll) == nil {
		client, err := a.Dial()
		if err != nil { // its daemon changes from a leader to a host
			continue
		}
		all, err := client.Hosts(waiting)
		done := err == nil && are(client, all)
		_ = client.Close() // nothing more is asked on it
		if done {
			return nil
		}
	}
	if ctx.Err() != nil {
		return &cli.Coded{Code: cli.ExitCancelled, Err: errors.New("stopped waiting; " + stopped)}
	}
	return errors.New(late)
}

// removes says what happens to the sessions of a host that is removed.
func removes(h *view.Host) string {
	if len(h.Sessions) == 0 {
		return fmt.Sprintf("No session runs on %s.", h.Name)
	}
	then := map[string]string{
		string(host.Restart): "begins again elsewhere", string(host.Ask): "begins again elsewhere", string(host.Wait): "is never replaced",
	}
	var says []string
	for _, s := range h.Sessions {
		says = append(says, s.Session+" "+then[s.OnLost])
	}
	return fmt.Sprintf("These sessions on %s end by their deadline, within %s: %s. `fairlead host drain %s` lets them finish.", h.Name,
		time.Duration(host.EndAfter), strings.Join(says, ", "), h.Name)
}
