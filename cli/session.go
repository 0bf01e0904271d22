package cli

import (
	"errors"
	"io/fs"
	"os"

	"github.com/fairlead-dev/fairlead/config"
)

// MaybeConfig reads fairlead.yaml; it returns nil if there is none.
func (a *App) MaybeConfig() (*config.Config, error) {
	conf, err := config.Load(a.Dir, os.LookupEnv)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return conf, err
}
