package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/claudehook"
)

// where says into which of an agent program's folders something is installed.
type where struct {
	plugin, project string
	user, local     bool
	dry             bool
}

func (w *where) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.project, "project", "", "the project's `folder` (by default the one of --dir)")
	cmd.Flags().BoolVar(&w.local, "local", false, "in the project, but for this user alone: settings.local.json")
	cmd.Flags().BoolVar(&w.user, "user", false, "for all projects of this user: ~/.claude")
	cmd.Flags().StringVar(&w.plugin, "plugin", "", "as a plugin, in a `folder` of its own")
	cmd.Flags().BoolVar(&w.dry, "dry-run", false, "only show what would be done")
}

// place is the folder that the flags mean.
func (w *where) place(cmd *cobra.Command, dir string) (claudehook.Place, error) {
	if w.plugin != "" && (w.project != "" || w.local || w.user) || w.user && (w.project != "" || w.local) {
		return claudehook.Place{}, usage(cmd, errors.New("name one place: --project, with --local or without, or --user, or --plugin"))
	}
	return w.named(dir)
}

func (w *where) named(dir string) (claudehook.Place, error) {
	switch {
	case w.plugin != "":
		abs, err := filepath.Abs(w.plugin)
		if err != nil {
			return claudehook.Place{}, fmt.Errorf("find the folder %s: %w", w.plugin, err)
		}
		return claudehook.Plugin(abs), nil
	case w.user:
		home, err := os.UserHomeDir()
		if err != nil {
			return claudehook.Place{}, fmt.Errorf("find your home folder: %w; name a project with --project", err)
		}
		return claudehook.User(home), nil
	case w.project != "":
		abs, err := filepath.Abs(w.project)
		if err != nil {
			return claudehook.Place{}, fmt.Errorf("find the folder %s: %w", w.project, err)
		}
		dir = abs
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return claudehook.Place{}, fmt.Errorf("%s is no folder; name the project with --project", dir)
	}
	place := claudehook.Project(dir, w.local)
	if home, err := os.UserHomeDir(); err == nil {
		place.Beside = append(place.Beside, filepath.Join(home, ".claude", "settings.json"))
	}
	return place, nil
}

// claudeVerb is about Claude Code's own settings.
func (a *app) claudeVerb() *cobra.Command {
	return noun(&cobra.Command{
		Use:   "claude",
		Short: "Install Fairlead's hooks in Claude Code, or remove them",
		Long: `The hooks let Claude Code run a dispatch on its own: /agent-state-machine starts one, and the hooks
enforce what each agent may do.`,
		Example: `  fairlead claude install
  fairlead claude uninstall`,
	}, a.claudeInstallVerb(), a.claudeUninstallVerb())
}

func (a *app) claudeInstallVerb() *cobra.Command {
	var w where
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install the hooks and the command /agent-state-machine in Claude Code",
		Long: `It adds hooks to the project's .claude/settings.json, and the slash command to .claude/commands. It
changes no other byte of the settings and keeps a copy of them. A second call changes nothing.
` + "`fairlead claude uninstall`" + ` removes exactly what was added.

The hooks call the program fairlead-hook if it is in the same folder as this program, otherwise
` + "`fairlead hook`" + `, by absolute path. On a machine without that program they do nothing.`,
		Example: `  fairlead claude install
  fairlead claude install --project ../shop --dry-run`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.install(cmd, w) },
	}
	w.flags(cmd)
	return cmd
}

func (a *app) claudeUninstallVerb() *cobra.Command {
	var w where
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove exactly what `fairlead claude install` added",
		Long: `It takes the hooks out of the settings and removes the slash command. Your own settings stay. A
file that you changed after the installation is not removed; its name is printed. Pass the same
place as to install: --project, --local, --user or --plugin.`,
		Example: "  fairlead claude uninstall",
		Args:    args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.uninstall(cmd, w) },
	}
	w.flags(cmd)
	return cmd
}

func (a *app) install(cmd *cobra.Command, w where) error {
	place, err := w.place(cmd, a.dir)
	if err != nil {
		return err
	}
	program, err := hookProgram()
	if err != nil {
		return err
	}
	steps, err := claudehook.Install(place, program)
	if err != nil {
		return fmt.Errorf("install for Claude Code: %w", err)
	}
	if err := a.carryOut(steps, w.dry); err != nil {
		return err
	}
	if a.json || w.dry {
		return nil
	}
	if place.Settings == "" {
		fmt.Fprintf(a.out, "\nnext: claude --plugin-dir %s, and there /fairlead:%s\n", plain(place.Dir), claudehook.CommandName)
		return nil
	}
	fmt.Fprintf(a.out, "\nnext: start claude anew in the project, and there /%s\n", claudehook.CommandName)
	return nil
}

func (a *app) uninstall(cmd *cobra.Command, w where) error {
	place, err := w.place(cmd, a.dir)
	if err != nil {
		return err
	}
	steps, err := claudehook.Uninstall(place)
	if err != nil {
		return fmt.Errorf("uninstall for Claude Code: %w", err)
	}
	return a.carryOut(steps, w.dry)
}

// carryOut does the steps, or only shows them.
func (a *app) carryOut(steps []claudehook.Step, dry bool) error {
	if !dry {
		if err := claudehook.Apply(steps); err != nil {
			return err
		}
	}
	if a.json {
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
		return a.printJSON(map[string]any{"dry_run": dry, "steps": said})
	}
	if len(steps) == 0 {
		fmt.Fprintln(a.out, "nothing to do")
	}
	for _, s := range steps {
		fmt.Fprintln(a.out, plain(stepWords(s, dry)))
		if dry && len(s.Text) > 0 {
			for line := range strings.Lines(string(s.Text)) {
				fmt.Fprintln(a.out, "  | "+plain(strings.TrimRight(line, "\r\n")))
			}
		}
	}
	return nil
}

// stepWords is a step for people.
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

// hookProgram is what a hook starts: the small program beside this one, or this one.
func hookProgram() (claudehook.Program, error) {
	exe, err := os.Executable()
	if err != nil {
		return claudehook.Program{}, fmt.Errorf("find this program: %w", err)
	}
	exe = strings.TrimSuffix(exe, " (deleted)")
	if strings.Contains(exe, "/go-build") && filepath.Base(filepath.Dir(exe)) == "exe" { // go run
		return claudehook.Program{}, errors.New("this program was built for one run and will be gone; build one that stays, as by: go install ./cmd/fairlead ./cmd/fairlead-hook")
	}
	small := filepath.Join(filepath.Dir(exe), "fairlead-hook")
	if info, err := os.Stat(small); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
		return claudehook.Program{Path: small}, nil
	}
	return claudehook.Program{Path: exe, Args: []string{"hook"}}, nil
}
