package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/workspace"
)

// diskLook is how often the folder is measured: a look at each file in it.
const diskLook = 10 * time.Minute

// watchDisk measures the folder, and says when it comes near its budget.
func (d *Daemon) watchDisk(ctx context.Context) {
	tick := time.NewTicker(diskLook)
	defer tick.Stop()
	for said := 0; ; {
		is, err := workspace.MeasureDisk(ctx, d.Conf.Dir, d.Conf.Team.DiskBytes)
		switch level := is.Level(); {
		case ctx.Err() != nil:
			return
		case err != nil:
			d.log.Warn("the disk that .fairlead takes is not known", "error", err)
		case level > said:
			d.log.Warn(is.String(), "way out", workspace.WayOut)
			fallthrough
		default:
			if said = level; level > 0 {
				d.disk.Store(is.String())
			} else {
				d.disk.Store("")
			}
			select {
			case d.look <- struct{}{}:
			default:
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// nearBudget is what notices say about the disk; empty: nothing.
func (d *Daemon) nearBudget() string {
	text, _ := d.disk.Load().(string)
	return text
}

// sayDisk warns a person who has started a daemon in the background, whose log is in a file.
func sayDisk(ctx context.Context, a *cli.App, conf *config.Config) {
	if is, err := workspace.MeasureDisk(ctx, conf.Dir, conf.Team.DiskBytes); err == nil && is.Level() > 0 {
		fmt.Fprintf(a.Err, "fairlead: %s; %s\n", is, workspace.WayOut)
	}
}
