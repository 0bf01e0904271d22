package daemon

import (
	"os"
	"slices"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/notify"
	"github.com/fairlead-dev/fairlead/view"
)

// openNotices opens what notifies people of waiting questions. It returns nil if fairlead.yaml
// configures no notifications.
func (d *Daemon) openNotices() (func(view.InboxItem), error) {
	to := d.Conf.Notify
	if to.Webhook.Empty() && !to.Desktop {
		return nil, nil
	}
	options := notify.Options{Desktop: to.Desktop, Log: d.log}
	if !to.Webhook.Empty() {
		address, err := to.Webhook.Resolve(os.LookupEnv)
		options.Webhook = func() (string, error) { return address, err }
	}
	teller, err := notify.Open(options)
	if err != nil {
		return nil, err
	}
	d.keepFromAgents(to.Webhook.References())
	d.closers = append(d.closers, teller.Close) // opened before the controller, so closed after it: it can send until the end
	return func(item view.InboxItem) { teller.Tell(notice(item)) }, nil
}

// keepFromAgents removes variables that only Fairlead needs from the environment of agents. A
// variable that an agent's own env names is kept: that is a deliberate choice.
func (d *Daemon) keepFromAgents(names []string) {
	for _, name := range names {
		wanted := slices.ContainsFunc(d.Conf.Agents, func(a config.Agent) bool { return slices.Contains(a.Env.References(), name) })
		if !wanted {
			_ = os.Unsetenv(name) // a name that was looked up can be removed
		}
	}
}

// notice is the part of a question that leaves this machine: neither output nor messages.
func notice(item view.InboxItem) notify.Notice {
	return notify.Notice{
		Kind: item.Kind, Run: item.Run, Step: item.Step, Workflow: item.Workflow, Why: item.Why,
		Since: item.Since, ManualInputPath: item.Path, Agent: item.Agent,
	}
}
