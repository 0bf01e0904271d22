package daemon

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/notice"
	"github.com/fairlead-dev/fairlead/work/notify"
	"github.com/fairlead-dev/fairlead/work/outside"
)

// Messages in an hour, unless fairlead.yaml says otherwise: a person reads no more; a program does.
const (
	perHourPerson  = 20
	perHourProgram = 600
)

// flushMax is how long a daemon that stops waits for notices that are due.
const flushMax = 3 * time.Second

// openNotices opens the ways to people. It returns nil if fairlead.yaml names no target.
func (d *Daemon) openNotices() (*outside.Notices, error) {
	conf := &d.Conf.Notify
	if len(conf.Targets) == 0 {
		return nil, nil
	}
	ways := map[string]notify.Sender{}
	open := &outside.Notices{Kinds: map[string]string{}, Disk: d.nearBudget, Look: d.look}
	for i := range conf.Targets {
		t := &conf.Targets[i]
		address, err := t.Address(lookupEnv)
		if err != nil {
			return nil, fmt.Errorf("find out where notices go: notify.targets.%s: %w", t.Name, err)
		}
		way, err := notify.Open(address)
		if err != nil {
			return nil, fmt.Errorf("%s: notify.targets.%s %w", d.Conf.File, t.Name, err)
		}
		ways[t.Name], open.Kinds[t.Name] = way, way.Kind()
		target, err := noticeTarget(t, way)
		if err != nil {
			return nil, err
		}
		open.Targets = append(open.Targets, target)
		d.keepFromAgents(t.URL.References())
	}
	open.Send = func(ctx context.Context, target string, listed []notice.Notice, more int) *notice.Failure {
		return ways[target].Send(ctx, notify.Message{Listed: listed, More: more, Base: cmp.Or(conf.Page, d.address+"/")})
	}
	return open, nil
}

func noticeTarget(t *config.NotifyTarget, way notify.Sender) (notice.Target, error) {
	target := notice.Target{Name: t.Name, Each: way.Each(), PerHour: cmp.Or(t.PerHour, perHourPerson)}
	if t.PerHour == 0 && way.Each() {
		target.PerHour = perHourProgram
	}
	for _, e := range t.Events {
		target.Events = append(target.Events, notice.Event(e))
	}
	if len(t.Events) == 0 {
		target.Events = notice.Usual()
	}
	target.Quiet = notice.Quiet{From: t.Quiet.From, To: t.Quiet.To, Zone: time.Local}
	if t.Zone != "" {
		zone, err := time.LoadLocation(t.Zone)
		if err != nil {
			return target, fmt.Errorf("notify.targets.%s: %w", t.Name, err)
		}
		target.Quiet.Zone = zone
	}
	return target, nil
}

// flushNotices sends what is due before the daemon stops.
func (d *Daemon) flushNotices() error {
	ctx, cancel := context.WithTimeout(context.Background(), flushMax)
	defer cancel()
	d.Engine.Notices.FlushNotices(ctx)
	return nil
}

// withheld are the variables that were removed from the environment, for the next configuration.
var withheld struct {
	sync.Mutex
	values map[string]string
}

// keepFromAgents removes variables that only Fairlead needs from the environment of agents. A
// variable that an agent's own env names is kept: that is a deliberate choice.
func (d *Daemon) keepFromAgents(names []string) {
	withheld.Lock()
	defer withheld.Unlock()
	for _, name := range names {
		wanted := slices.ContainsFunc(d.Conf.Agents, func(a config.Agent) bool { return slices.Contains(a.Env.References(), name) })
		if value, is := os.LookupEnv(name); is && !wanted {
			if withheld.values == nil {
				withheld.values = map[string]string{}
			}
			withheld.values[name] = value
			_ = os.Unsetenv(name) // a name that was looked up can be removed
		}
	}
}

// lookupEnv finds a variable in the environment, or among those that agents do not get.
func lookupEnv(name string) (string, bool) {
	if value, is := os.LookupEnv(name); is {
		return value, true
	}
	withheld.Lock()
	defer withheld.Unlock()
	value, is := withheld.values[name]
	return value, is
}
