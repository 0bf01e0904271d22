package main

import (
	"os"

	"github.com/fairlead-dev/fairlead/engine"
	"github.com/fairlead-dev/fairlead/notify"
)

// openNotices makes ready whoever tells people that they are waited for. It gives nil where
// nobody is to be told: then nothing is opened, and the engine tells nobody.
func (d *daemon) openNotices() (func(engine.InboxItem), error) {
	to := d.conf.Notify
	if to.Webhook.Empty() && !to.Desktop {
		return nil, nil
	}
	options := notify.Options{Desktop: to.Desktop, Log: d.log}
	if !to.Webhook.Empty() {
		options.Webhook = func() (string, error) { return to.Webhook.Resolve(os.LookupEnv) }
	}
	teller, err := notify.Open(options)
	if err != nil {
		return nil, err
	}
	d.closers = append(d.closers, teller.Close) // opened before the engine, so closed after it: it tells until its end
	return func(item engine.InboxItem) { teller.Tell(notice(item)) }, nil
}

// notice is what leaves this machine of a question: not what was produced, not what was said.
func notice(item engine.InboxItem) notify.Notice {
	return notify.Notice{
		Kind: item.Kind, Run: item.Run, Step: item.Step, Workflow: item.Workflow, Why: item.Why,
		Since: item.Since, ManualInputPath: item.Path,
	}
}
