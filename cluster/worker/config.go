package worker

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// configFile is in the folder of the host's keys, .fairlead/cluster.
const configFile = "host.json"

// Config is what a host has stored when it joined.
type Config struct {
	Name      string   `json:"name"`
	Team      string   `json:"team"`
	Addresses []string `json:"addresses"` // of the leader, HOST:PORT
	Labels    []string `json:"labels,omitempty"`
	Capacity  int      `json:"capacity"`
}

// Folder is where a host of a repository keeps its files, and its identity.
func Folder(dir string) string { return filepath.Join(dir, ".fairlead", "cluster") }

// SaveConfig writes the file that makes a folder one of a host.
func SaveConfig(dir string, c Config) error {
	return file.StoreJSON(filepath.Join(Folder(dir), configFile), c)
}

// LoadConfig reads what SaveConfig wrote. The error is fs.ErrNotExist if this machine is no host.
func LoadConfig(dir string) (c Config, err error) {
	path := filepath.Join(Folder(dir), configFile)
	if _, err := os.Stat(path); err != nil {
		return c, err
	}
	if err := file.LoadJSON(path, &c); err != nil {
		return c, err
	}
	if c.Name == "" || len(c.Addresses) == 0 {
		return c, fmt.Errorf("%s has no name or no address of a leader; join anew: `fairlead cluster leave --force`, then `fairlead host join`", path)
	}
	return c, nil
}
