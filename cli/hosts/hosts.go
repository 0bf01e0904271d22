package hosts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/machine/host"
	"github.com/fairlead-dev/fairlead/view"
)

const (
	textMax   = 200 // characters of a label, an address or a reason
	lateMax   = 800
	lateShown = 5 // late reports of a host, the newest ones; --json has more
)

// Invite asks the daemon for an invitation, and prints what to type on the other machine.
func Invite(ctx context.Context, a *cli.App, client *apiclient.Client, labels []string) error {
	if err := checkLabels(labels); err != nil {
		return err
	}
	var given []api.HostLabel
	for _, label := range labels {
		given = append(given, api.HostLabel(label))
	}
	is, err := client.Invite(ctx, given)
	if err != nil {
		return cli.Faulty(err)
	}
	return a.Show(is, func() error {
		fmt.Fprintf(a.Out, "This invitation is for one host of team %s, until %s. On the other machine, in an empty folder or a clone of this repository:\n\n", is.Team, cli.Clock(is.ExpiresAt))
		fmt.Fprintf(a.Out, "  fairlead host join %s\n  fairlead up\n", is.Token)
		if is.Loopback {
			fmt.Fprintf(a.Out, "\nOnly this machine reaches %s. "+otherAddress+"\n", is.Address)
		}
		return nil
	})
}

const otherAddress = "For other machines: `fairlead cluster leave`, then `fairlead cluster init --listen ADDRESS:4222`."

// List prints the hosts of the team.
func List(ctx context.Context, a *cli.App, client *apiclient.Client) error {
	all, err := client.Hosts(ctx)
	if err != nil {
		return err
	}
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
		for _, text := range []string{lease, strings.Join(h.Labels, ","), h.Version, h.Address, h.Why} {
			fmt.Fprintf(w, "\t%s", cli.OrDash(cli.Line(text, textMax)))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
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

// Drain lets a host finish its sessions.
func Drain(ctx context.Context, a *cli.App, client *apiclient.Client, name string) error {
	done, err := client.DrainHost(ctx, name)
	if err != nil {
		return cli.Faulty(err)
	}
	return a.Say(done, "%s gets no new session, and leaves when its last one has ended; `fairlead hosts` shows that", cli.Plain(name))
}

// Remove takes a host out of the team, after a question.
func Remove(ctx context.Context, a *cli.App, client *apiclient.Client, name string, yes bool) error {
	all, err := client.Hosts(ctx)
	if err != nil {
		return err
	}
	if at := slices.IndexFunc(all.Hosts, func(h view.Host) bool { return h.Name == name }); at >= 0 && !yes {
		if err := a.Confirm(removes(&all.Hosts[at])+" Remove it?", "nothing was removed", "pass --yes to remove without a question"); err != nil {
			return err
		}
	}
	done, err := client.RemoveHost(ctx, name)
	if err != nil {
		return cli.Faulty(err)
	}
	return a.Say(done, "%s is removed; it needs a new invitation to join again", cli.Plain(name))
}

// removes says what happens to the sessions of a host that is removed.
func removes(h *view.Host) string {
	if len(h.Sessions) == 0 {
		return fmt.Sprintf("No session runs on %s.", h.Name)
	}
	then := map[string]string{
		string(host.Restart): "begins anew elsewhere", string(host.Ask): "begins anew elsewhere", string(host.Wait): "is never replaced",
	}
	var says []string
	for _, s := range h.Sessions {
		says = append(says, s.Session+" "+then[s.OnLost])
	}
	return fmt.Sprintf("These sessions on %s are ended by their deadline, within %s: %s. `fairlead host drain %s` lets them finish.", h.Name, time.Duration(host.EndAfter), strings.Join(says, ", "), h.Name)
}
