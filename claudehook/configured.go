package claudehook

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"go.yaml.in/yaml/v4"
)

// configured is what fairlead.yaml says of the rules of a repository's sessions.
type configured struct {
	Tools   []string `yaml:"tools"`   // that MAIN may use beside those that everybody knows
	Commits *bool    `yaml:"commits"` // agents may have git write its records; nil: they may
}

// configuredIn reads it. The whole of that file is checked elsewhere, and to link that would make
// every hook start slower; of what is needed here, one wrong thing is an error.
func configuredIn(repo string) (configured, error) {
	var conf struct {
		Dispatch *configured `yaml:"dispatch"`
		Session  configured  `yaml:"session"` // the old name
	}
	path := filepath.Join(repo, "fairlead.yaml")
	text, _, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		return configured{}, nil
	}
	if err != nil {
		return configured{}, fmt.Errorf("read %s: %w", path, err)
	}
	if err := yaml.Unmarshal(text, &conf); err != nil {
		return configured{}, fmt.Errorf("read what %s says of sessions: %w; fairlead doctor says what is wrong", path, err)
	}
	if conf.Dispatch != nil {
		return *conf.Dispatch, nil
	}
	return conf.Session, nil
}
