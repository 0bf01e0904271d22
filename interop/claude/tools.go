package claude

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"go.yaml.in/yaml/v4"
)

// toolsOf are the tools that MAIN may use in a repository beside those that everybody knows: what
// session.tools of its fairlead.yaml says. The whole of that file is checked elsewhere, and reading it
// so would make every hook start slower; of what is needed here, one wrong thing is an error.
func toolsOf(repo string) ([]string, error) {
	path := filepath.Join(repo, "fairlead.yaml")
	text, _, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	var conf struct {
		Session struct {
			Tools []string `yaml:"tools"`
		} `yaml:"session"`
	}
	if err := yaml.Unmarshal(text, &conf); err != nil {
		return nil, fmt.Errorf("read session.tools of %s: %w; fairlead doctor says what is wrong", path, err)
	}
	return conf.Session.Tools, nil
}
