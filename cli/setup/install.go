package setup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/process/claudehook"
)

// Where selects the folder of an agent program to install into.
type Where struct {
	plugin, project string
	user, local     bool
	Dry             bool
}

// Flags adds the flags that say where hooks are installed.
func (w *Where) Flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.project, "project", "", "the project's `folder` (by default the one of --dir)")
	cmd.Flags().BoolVar(&w.local, "local", false, "in the project, but only for this user: settings.local.json")
	cmd.Flags().BoolVar(&w.user, "user", false, "for all projects of this user: ~/.claude")
	cmd.Flags().StringVar(&w.plugin, "plugin", "", "as a plugin, in a `folder` of its own")
	cmd.Flags().BoolVar(&w.Dry, "dry-run", false, "show the changes without making them")
}

// Place is the folder that the flags select.
func (w *Where) Place(cmd *cobra.Command, dir string) (claudehook.Place, error) {
	if w.plugin != "" && (w.project != "" || w.local || w.user) || w.user && (w.project != "" || w.local) {
		return claudehook.Place{}, cli.Usage(cmd, errors.New("name one place: --project, with --local or without, or --user, or --plugin"))
	}
	return w.named(dir)
}

func (w *Where) named(dir string) (claudehook.Place, error) {
	switch {
	case w.plugin != "":
		abs, err := filepath.Abs(w.plugin)
		if err != nil {
			return claudehook.Place{}, fmt.Errorf("find the folder %s: %w", w.plugin, err)
		}
		return claudehook.Plugin(abs), nil
	case w.user:
		place, err := ofUser()
		if err != nil {
			return claudehook.Place{}, fmt.Errorf("find your home folder: %w; name a project with --project", err)
		}
		return place, nil
	case w.project != "":
		abs, err := filepath.Abs(w.project)
		if err != nil {
			return claudehook.Place{}, fmt.Errorf("find the folder %s: %w", w.project, err)
		}
		dir = abs
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return claudehook.Place{}, fmt.Errorf("%s is not a folder; name the project with --project", dir)
	}
	place := claudehook.Project(dir, w.local)
	if user, err := ofUser(); err == nil {
		place.Beside = append(place.Beside, filepath.Join(user.Dir, user.Settings))
	}
	return place, nil
}

// ofUser is the folder of the user's own settings, where Claude Code reads them.
func ofUser() (claudehook.Place, error) {
	if dir := os.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		abs, err := filepath.Abs(dir)
		return claudehook.User("", abs), err
	}
	home, err := os.UserHomeDir()
	return claudehook.User(home, ""), err
}

// CarryOut carries out the steps, or only prints them.
func CarryOut(a *cli.App, steps []claudehook.Step, dry bool) error {
	if !dry {
		if err := claudehook.Apply(steps); err != nil {
			return err
		}
	}
	if a.JSON {
		type step struct {
			Act  claudehook.Act `json:"act"`
			Path string         `json:"path"`
			To   string         `json:"to,omitempty"`
			Note string         `json:"note,omitempty"`
			Text string         `json:"text,omitempty"`
		}
		said := make([]step, 0, len(steps))
		for _, s := range steps {
			one := step{Act: s.Act, Path: s.Path, To: s.To, Note: s.Note}
			if dry {
				one.Text = string(s.Text)
			}
			said = append(said, one)
		}
		return a.PrintJSON(map[string]any{"dry_run": dry, "steps": said})
	}
	if len(steps) == 0 {
		fmt.Fprintln(a.Out, "nothing to do")
	}
	for _, s := range steps {
		fmt.Fprintln(a.Out, cli.Plain(stepWords(s, dry)))
		if dry && len(s.Text) > 0 {
			for line := range strings.Lines(string(s.Text)) {
				fmt.Fprintln(a.Out, "  | "+cli.Plain(strings.TrimRight(line, "\r\n")))
			}
		}
	}
	return nil
}

// stepWords describes a step for people.
func stepWords(s claudehook.Step, dry bool) string {
	done := map[claudehook.Act]string{
		claudehook.Write: "wrote", claudehook.Change: "changed", claudehook.Remove: "removed",
		claudehook.Aside: "put aside", claudehook.Back: "put back", claudehook.Left: "left",
	}[s.Act]
	if dry {
		done = "would " + map[claudehook.Act]string{
			claudehook.Write: "write", claudehook.Change: "change", claudehook.Remove: "remove",
			claudehook.Aside: "put aside", claudehook.Back: "put back", claudehook.Left: "leave",
		}[s.Act]
	}
	text := done + " " + s.Path
	if s.To != "" {
		text += " as " + s.To
	}
	if s.Note != "" {
		text += " (" + s.Note + ")"
	}
	return text
}

// HookProgram is the program that a hook starts: the small program beside this one, or this one.
func HookProgram() (claudehook.Program, error) {
	exe, err := os.Executable()
	if err != nil {
		return claudehook.Program{}, fmt.Errorf("find this program: %w", err)
	}
	if strings.Contains(exe, "/go-build") && filepath.Base(filepath.Dir(exe)) == "exe" { // go run
		return claudehook.Program{},
			errors.New("this program is a temporary build of go run; install a permanent one: go install ./cmd/fairlead ./cmd/fairlead-hook")
	}
	small := filepath.Join(filepath.Dir(exe), "fairlead-hook")
	if info, err := os.Stat(small); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
		return claudehook.Program{Path: small}, nil
	}
	return claudehook.Program{Path: exe, Args: []string{"hook"}}, nil
}
