package doctor

import (
	"context"
	"os"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/questions"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/notify"
)

// lookAtNotices says which receivers of notices cannot be reached. A daemon knows; without one only the addresses are
// read. Nothing is sent.
func lookAtNotices(ctx context.Context, a *cli.App, conf *config.Config) []Finding {
	if len(conf.Notify.Targets) == 0 {
		return nil
	}
	if client, err := a.Dial(); err == nil {
		defer client.Close()
		asking, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if targets, err := client.NoticeTargets(asking); err == nil {
			var findings []Finding
			for i := range targets {
				t := &targets[i]
				f := Finding{OK: t.State != "failing", About: "notices", What: t.Name + " (" + t.Kind + ") gets notices", Do: "`fairlead notify test " + t.Name + "` tries it"}
				if !f.OK {
					f.What = t.Name + " (" + t.Kind + "): " + questions.FailingWords(t)
				}
				findings = append(findings, f)
			}
			return findings
		}
	}
	var findings []Finding
	for i := range conf.Notify.Targets {
		t := &conf.Notify.Targets[i]
		f := Finding{OK: true, About: "notices", What: t.Name + " has an address; `fairlead notify test` tries it while Fairlead runs"}
		address, err := t.Address(os.LookupEnv)
		if err == nil {
			_, err = notify.Open(address)
		}
		if err != nil {
			f = Finding{About: "notices", What: "notify.targets." + t.Name + " " + err.Error(), Do: "correct fairlead.yaml, or the variable or file that it refers to"}
		}
		findings = append(findings, f)
	}
	return findings
}
