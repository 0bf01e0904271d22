package dispatch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	dispatchctl "github.com/fairlead-dev/fairlead/controller/dispatch"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
)

// The words for what carries out a session.
const (
	HostNone     = "none"
	HostFairlead = "fairlead"
)

// SessionBegun is what `fairlead dispatch start --json` prints.
type SessionBegun struct {
	Path   string   `json:"path"`
	State  string   `json:"state"`
	Mode   string   `json:"mode"`
	Name   string   `json:"name"`
	Host   string   `json:"host"`
	Agents int      `json:"agents"`
	Notes  []string `json:"notes,omitempty"`
}

// SessionStart starts a dispatch folder and prints its initial status.
func SessionStart(ctx context.Context, a *cli.App, path string, mode dispatch.Mode, host string) error {
	where := filepath.Join(a.Dir, filepath.FromSlash(usualPlace), "new")
	if path != "" {
		abs, err := filepath.Abs(path)
		if err != nil {
			return fmt.Errorf("find %s: %w", path, err)
		}
		path, where = abs, abs
	}
	if err := outside(a, "session_start", where, dispatch.NoHost); err != nil {
		return err
	}
	orders, err := Orders(a)
	if err != nil {
		return err
	}
	if host, err = served(a, orders, host); err != nil {
		return err
	}
	f, err := orders.StartDispatch(seam.Actor{Kind: byHand.Kind, ID: byHand.ID}, string(mode), host, path)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(SessionBegun{
			Path: f.Path(), State: f.Is.State(), Mode: string(f.Is.Mode), Name: f.Name(),
			Host: hostWord(f.Is.Host), Agents: len(f.Is.Agents), Notes: f.Notes,
		})
	}
	for _, note := range f.Notes {
		fmt.Fprintln(a.Err, "note: "+cli.Line(note, cli.ErrorWidth))
	}
	_, err = fmt.Fprint(a.Out, cli.Plain(strings.TrimRight(dispatchfolder.Status(f.Is, len(f.Is.Agents)), "\n"))+"\n")
	return err
}

// served returns what carries out the dispatch, HostFairlead or HostNone. Without --host it is HostNone if no
// daemon runs; with --host fairlead that is an error.
func served(a *cli.App, orders dispatchctl.Orders, host string) (string, error) {
	if host == HostNone || host == "" && !orders.CanHost() {
		return HostNone, nil
	}
	if _, err := a.Load(); err != nil {
		return "", err // it says how to make a fairlead.yaml
	}
	client, err := a.Dial()
	var none *apiclient.NoDaemon
	switch {
	case err == nil:
		_ = client.Close() // the connection only shows that a daemon runs
		return HostFairlead, nil
	case host == "" && errors.As(err, &none):
		return HostNone, nil
	default:
		return "", err
	}
}

func hostWord(h dispatch.Host) string {
	if h == dispatch.NoHost {
		return HostNone
	}
	return string(h)
}
