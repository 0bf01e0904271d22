//go:build !linux

package claudehook

import (
	"fmt"
	"io"

	"github.com/fairlead-dev/fairlead/sandbox"
)

// ConfineVerb is the argument after the program's name that makes it run a command in the sandbox.
const ConfineVerb = "exec"

// Confine needs the Linux kernel. The hook does not use it elsewhere.
func Confine(_ []string, errs io.Writer) int {
	_, why := sandbox.Supported()
	fmt.Fprintf(errs, "fairlead: run the command in the sandbox: %s; nothing was run\n", why)
	return sandbox.CannotSandbox
}
