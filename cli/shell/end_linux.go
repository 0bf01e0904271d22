package shell

import (
	"os"
	"syscall"

	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// endWithParent ends a view when this command was killed.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

func heldBy(points *sandbox.Points) []*os.File { return points.Files() }
