package uitest

import (
	"context"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/machine/notice"
)

// noticesOf returns the targets of a configuration. The one named lost cannot be reached;
// deliveries to the others succeed.
func noticesOf(conf *config.Config) *seam.Notices {
	n := &seam.Notices{Kinds: map[string]string{}, Send: func(_ context.Context, target string, _ []notice.Matter, _ int) *notice.Failure {
		if target == "lost" {
			return &notice.Failure{Cause: "connection refused", WayOut: "see that the host can be reached from here", Again: true}
		}
		return nil
	}}
	for i := range conf.Notify.Targets {
		name := conf.Notify.Targets[i].Name
		n.Targets, n.Kinds[name] = append(n.Targets, notice.Target{Name: name, Events: notice.Usual(), PerHour: 20}), "ntfy"
	}
	return n
}
