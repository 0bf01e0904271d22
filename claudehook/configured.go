package claudehook

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"go.yaml.in/yaml/v4"
)

// configured is the part of fairlead.yaml that hooks need.
type configured struct {
	Tools   []string `yaml:"tools"`   // that MAIN may use besides the known ones
	Hooks   []string `yaml:"hooks"`   // commands of other hooks that do not replace shell commands
	Commits *bool    `yaml:"commits"` // whether agents may run git add and git commit; nil: yes
}

// configuredIn reads it. Package config is not used, because it would slow down the start of every hook; an
// error in the needed part is an error here.
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
		return configured{}, fmt.Errorf("read the dispatch settings in %s: %w; fairlead doctor reports the fault", path, err)
	}
	if conf.Dispatch != nil {
		return *conf.Dispatch, nil
	}
	return conf.Session, nil
}
