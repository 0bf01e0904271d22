package claudehook

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
)

// responseSetup is a dispatch in mode response (D6). It has no MAIN, so the program that begins it is no part of it: the daemon serves its
// inbox with the agents of fairlead.yaml. note says which agents it cannot start.
func (h Hook) responseSetup(repo string) (setup dispatch.Setup, note string, err error) {
	setup = dispatch.Setup{Mode: dispatch.Response, Host: dispatch.Fairlead}
	if setup.Agents, _, err = dispatchfolder.Agents(repo, h.Home); err != nil {
		return setup, "", fmt.Errorf("read the agents' descriptions: %w", err)
	}
	var conf struct {
		Dispatch struct{ Main, Ranker string }
		Agents   map[string]struct{ Description string }
	}
	if err := readConfig(repo, &conf); err != nil {
		return setup, "", err
	}
	path := filepath.Join(repo, "fairlead.yaml")
	setup.Agents = slices.DeleteFunc(setup.Agents, func(d dispatch.Description) bool {
		return d.Name == conf.Dispatch.Main || conf.Agents[d.Name].Description != ""
	})
	var missing []string
	for _, d := range setup.Agents {
		if _, ok := conf.Agents[d.Name]; !ok {
			missing = append(missing, d.Name)
		}
	}
	for name, a := range conf.Agents {
		if a.Description != "" && name != conf.Dispatch.Main && name != conf.Dispatch.Ranker {
			setup.Agents = append(setup.Agents, dispatch.Description{Name: name, Text: a.Description, File: path})
		}
	}
	slices.SortFunc(setup.Agents, func(a, b dispatch.Description) int { return strings.Compare(a.Name, b.Name) })
	if len(missing) > 0 {
		note = fmt.Sprintf(" These agents are not in %s, so the daemon cannot start them, and a message for them fails: %s.", path,
			strings.Join(missing, ", "))
	}
	return setup, note, nil
}

// responseContext is what the model is told about a dispatch in mode response.
func responseContext(folder *dispatchfolder.Folder, note string) string {
	inbox := filepath.Join(folder.Path(), "inbox")
	return "This session has mode response, so there is no MAIN, and you are no part of it: nothing that you do is recorded or restricted by it. Tell the user: put messages as *.md or *.txt into " + inbox +
		"; the agent that fits answers each in NAME.result.md beside it; the daemon does that (fairlead up); /" + CommandName +
		" --session end --path " + folder.Path() + " ends it." + note
}

// endResponse ends a dispatch in mode response, which belongs to no conversation of a program. done is false if path has none.
func (h Hook) endResponse(path string) (a Answer, done bool) {
	folder, err := dispatchfolder.Open(path)
	if err != nil {
		return Answer{}, false
	}
	s, err := folder.Session()
	if err != nil || s.Mode != dispatch.Response || s.Program != "" || s.Phase == dispatch.Closed {
		return Answer{}, false
	}
	if _, _, err := folder.Do(h.Now(), change.Actor{Kind: "human", ID: "claude"},
		dispatch.End{Why: "the user ended it"}); err != nil {
		return refusePrompt("Fairlead: the session was not ended: " + err.Error()), true
	}
	return tell(UserPromptSubmit, "Fairlead has ended the session in "+folder.Path()+". Tell the user in one sentence.",
		"session ended; its record stays in "+folder.Path()), true
}
