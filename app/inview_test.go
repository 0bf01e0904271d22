package app

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// viewVar makes the agents of this package's worlds run in a view of the machine.
const viewVar = "FAIRLEAD_TEST_VIEW"

// viewed starts each session in a view with the workspace and this program.
type viewed struct{ *sessions.Shims }

func inView(host *sessions.Shims) sessionhost.Host {
	if os.Getenv(viewVar) == "" {
		return host
	}
	return viewed{host}
}

func (h viewed) Start(ctx context.Context, session string, epoch uint64, launch spawn.Launch, grace time.Duration,
) (sessionhost.Process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	v := sandbox.Abilities().Apply(sandbox.View{Places: []sandbox.Place{
		{Path: filepath.Dir(exe), Access: sandbox.Read}, {Path: h.Workspace, Access: sandbox.Write},
	}})
	launch.View = &v
	return h.Shims.Start(ctx, session, epoch, launch, grace)
}

// TestInView runs tests of kills, adoption and ends once more, with agents in views.
func TestInView(t *testing.T) {
	t.Parallel()
	if a := sandbox.Abilities(); a.By != sandbox.ByNamespaces || os.Getenv(viewVar) != "" {
		t.Skipf("there is no view here: %v", a.Why)
	}
	const tests = "^(TestEndsAreReportedByEvents|TestOrphans|TestEndedOrphans|TestForgedEpoch|TestStoppedShim|TestDeathBehindAStoppedShim|TestStoppedAgent|TestOutputAndFacts|TestStopOfASessionWithoutEnd)$"
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", tests) //nolint:gosec // ourselves
	cmd.Env = append(os.Environ(), viewVar+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
