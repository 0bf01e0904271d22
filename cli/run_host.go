package cli

import (
	"os"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/config"
)

// LoadOrNone reads the configuration; without a file it returns a team without agents.
func (a *App) LoadOrNone() (*config.Config, error) {
	if Exists(filepath.Join(a.Dir, config.FileName)) {
		return a.Load()
	}
	return config.Parse(config.FileName, a.Dir, []byte("version: 1\nagents: {}\n"), os.LookupEnv)
}
