package daemon

import (
	"os"
	"slices"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/notify"
	"github.com/fairlead-dev/fairlead/view"
)

// openNotices makes ready whoever tells people that they are waited for. It gives nil where
// nobody is to be told: then nothing is opened, and the engine tells nobody.
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
	d.closers = append(d.closers, teller.Close) // opened before the engine, so closed after it: it tells until its end
	return func(item view.InboxItem) { teller.Tell(notice(item)) }, nil
}

// keepFromAgents takes what only we need out of the environment that agents are started with.
// What an agent's own env names as well stays: somebody wanted it to have that.
func (d *Daemon) keepFromAgents(names []string) {
	for _, name := range names {
		wanted := slices.ContainsFunc(d.Conf.Agents, func(a config.Agent) bool { return slices.Contains(a.Env.References(), name) })
		if !wanted {
			_ = os.Unsetenv(name) // a name that was looked up is one that can be taken out
		}
	}
}

// notice is what leaves this machine of a question: not what was produced, not what was said.
func notice(item view.InboxItem) notify.Notice {
	return notify.Notice{
		Kind: item.Kind, Run: item.Run, Step: item.Step, Workflow: item.Workflow, Why: item.Why,
		Since: item.Since, ManualInputPath: item.Path, Agent: item.Agent,
	}
}
