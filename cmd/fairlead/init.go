package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/config"
)

func (a *app) initVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "Write a fairlead.yaml to begin with, and an agent that works at once",
		Long: `Writes a commented fairlead.yaml and the script of a first agent into the repository.
Nothing that is there already is changed.`,
		Args: args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return a.init() },
	}
}

func (a *app) init() error {
	if err := os.MkdirAll(a.dir, 0o755); err != nil { //nolint:gosec // a repository is as public as its owner makes it
		return fmt.Errorf("make the folder: %w", err)
	}
	// All or nothing: first see that none is there, then write, the configuration last.
	for _, kind := range config.StarterKinds() {
		if _, err := os.Lstat(filepath.Join(a.dir, string(kind))); err == nil {
			return fmt.Errorf("%s is there already, and is left as it is; change it by hand, or name another folder with --dir", filepath.Join(a.dir, string(kind)))
		}
	}
	var written []string
	for _, kind := range config.StarterKinds() {
		path := filepath.Join(a.dir, string(kind))
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // a file of the repository
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		_, err = file.Write(config.Starter(kind))
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		written = append(written, string(kind))
	}
	if a.json {
		return a.printJSON(map[string]any{"dir": a.dir, "written": written})
	}
	for _, name := range written {
		fmt.Fprintln(a.out, "wrote "+name)
	}
	fmt.Fprint(a.out, "\nnext:\n  fairlead up            the daemon, and the address of Mission Control\n  fairlead start AGENT   in another terminal; names are in fairlead.yaml\n")
	return nil
}
