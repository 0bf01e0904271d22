package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/claudehook"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/setup"
)

// claudeCommand is about Claude Code's own settings.
func claudeCommand(a *app) *cobra.Command {
	return noun(&cobra.Command{
		Use:   "claude",
		Short: "Install Fairlead's hooks in Claude Code, or remove them",
		Long: `The hooks let Claude Code run a dispatch on its own: /agent-state-machine starts one, and the hooks
enforce what each agent may do.`,
		Example: `  fairlead claude install
  fairlead claude uninstall`,
	}, claudeInstallCommand(a), claudeUninstallCommand(a))
}

func claudeInstallCommand(a *app) *cobra.Command {
	var w setup.Where
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
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.install(cmd, w) },
	}
	w.Flags(cmd)
	return cmd
}

func claudeUninstallCommand(a *app) *cobra.Command {
	var w setup.Where
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove exactly what `fairlead claude install` added",
		Long: `It takes the hooks out of the settings and removes the slash command. Your own settings stay. A
file that you changed after the installation is not removed; its name is printed. Pass the same
place as to install: --project, --local, --user or --plugin.`,
		Example: "  fairlead claude uninstall",
		Args:    cli.Args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.uninstall(cmd, w) },
	}
	w.Flags(cmd)
	return cmd
}

func (a *app) install(cmd *cobra.Command, w setup.Where) error {
	place, err := w.Place(cmd, a.Dir)
	if err != nil {
		return err
	}
	program, err := setup.HookProgram()
	if err != nil {
		return err
	}
	steps, err := claudehook.Install(place, program)
	if err != nil {
		return fmt.Errorf("install for Claude Code: %w", err)
	}
	if err := setup.CarryOut(a.App, steps, w.Dry); err != nil {
		return err
	}
	if a.JSON || w.Dry {
		return nil
	}
	if place.Settings == "" {
		fmt.Fprintf(a.Out, "\nnext: claude --plugin-dir %s, and there /fairlead:%s\n", cli.Plain(place.Dir), claudehook.CommandName)
		return nil
	}
	fmt.Fprintf(a.Out, "\nnext: start claude anew in the project, and there /%s\n", claudehook.CommandName)
	return nil
}

func (a *app) uninstall(cmd *cobra.Command, w setup.Where) error {
	place, err := w.Place(cmd, a.Dir)
	if err != nil {
		return err
	}
	steps, err := claudehook.Uninstall(place)
	if err != nil {
		return fmt.Errorf("uninstall for Claude Code: %w", err)
	}
	return setup.CarryOut(a.App, steps, w.Dry)
}
