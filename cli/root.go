package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/config"
)

// App is what every command has at hand.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	Dir      string // the workspace: --dir, or found from the current folder (place)
	placed   bool   // dir is settled
	JSON     bool
	Verbose  bool   // --verbose: details that people rarely need
	at       string // --at: the moment that a command shows; empty: now
}

// Dial finds the daemon of the repository.
func (a *App) Dial() (*apiclient.Client, error) {
	if err := a.Place(nil); err != nil {
		return nil, err
	}
	return apiclient.Dial(a.Dir)
}

// Load reads the configuration. Its error says how to make one if there is none.
func (a *App) Load() (*config.Config, error) {
	if err := a.Place(nil); err != nil {
		return nil, err
	}
	conf, err := config.Load(a.Dir, os.LookupEnv)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no fairlead.yaml in %s; make one with `fairlead init`, name another folder with --dir, or try `fairlead demo` first", a.Dir)
	}
	return conf, err
}

// Tty says whether a stream is a terminal.
func Tty(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a descriptor fits an int
}
