package shim

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// viewVar makes the agents of this package's tests run in a view, those of a daemon of the tests too.
const viewVar = "FAIRLEAD_TEST_VIEW"

func inView() bool { return os.Getenv(viewVar) != "" }

// viewOf is a view with this program, and with what lies beside a temporary folder; nil outside of TestInView.
func viewOf(folder string) *sandbox.View {
	if !inView() {
		return nil
	}
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(folder, os.TempDir()+"/"), "/")
	v := sandbox.Abilities().Apply(sandbox.View{Places: []sandbox.Place{
		{Path: filepath.Dir(exe), Access: sandbox.Read},
		{Path: filepath.Join(os.TempDir(), first), Access: sandbox.Write},
	}})
	return &v
}
