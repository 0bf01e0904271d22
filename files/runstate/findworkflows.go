package runstate

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/file"
)

const (
	foundMax     = 100    // workflows in a list that a person chooses from
	lookedAtMax  = 20_000 // files and folders of a repository; to look at more takes seconds
	foundDepth   = 5      // folders below the repository: deeper ones belong to dependencies and test data
	sniffBytes   = 64 << 10
	workflowsDir = "workflows"
)

// FoundWorkflow is a file of a repository that is a workflow, perhaps one with faults.
type FoundWorkflow struct {
	Path string // relative to the repository, with slashes; absolute outside of it
	*WorkflowFile
	Fault string // the first fault; WorkflowFile is nil then
}

// FindWorkflows lists the workflows of a repository: those that fairlead.yaml names first, then the YAML files with a name
// and steps in its folders, and in .fairlead/workflows and .agents/workflows. Other folders whose name begins with a dot,
// node_modules and vendor are left out. cut: there are more than are listed or looked at.
func FindWorkflows(repo string, named []string) (found []FoundWorkflow, cut bool) {
	seen := map[string]bool{}
	take := func(path string) {
		switch {
		case seen[path]:
		case len(found) == foundMax:
			cut = true
		default:
			seen[path] = true
			found = append(found, readFound(repo, path))
		}
	}
	for _, path := range named {
		take(path)
	}
	looked := 0
	_ = filepath.WalkDir(repo, func(path string, entry fs.DirEntry, err error) error {
		if looked++; looked > lookedAtMax || cut {
			cut = true
			return fs.SkipAll
		}
		if err != nil {
			return fs.SkipDir // a folder that cannot be read has no workflow to choose
		}
		if entry.IsDir() {
			return enter(repo, path, entry.Name())
		}
		if ext := filepath.Ext(path); entry.Type().IsRegular() && (ext == ".yaml" || ext == ".yml") && looksLikeWorkflow(path) {
			take(path)
		}
		return nil
	})
	return found, cut
}

// enter decides whether a folder is looked at.
func enter(repo, path, name string) error {
	rel, err := filepath.Rel(repo, path)
	if err != nil || rel == "." {
		return nil //nolint:nilerr // the walk stays below the repository
	}
	parts := strings.Split(rel, string(filepath.Separator))
	hidden := parts[0] == ".fairlead" || parts[0] == ".agents"
	switch {
	case hidden && (len(parts) == 1 || parts[1] == workflowsDir):
		return nil
	case hidden, strings.HasPrefix(name, "."), name == "node_modules", name == "vendor", len(parts) > foundDepth:
		return fs.SkipDir
	}
	return nil
}

// A workflow has a name and steps. Scripts of agents have steps and no name, workflows of other programs have no steps at
// the top.
var (
	hasName  = regexp.MustCompile(`(?m)^["']?name["']?[ \t]*:`)
	hasSteps = regexp.MustCompile(`(?m)^["']?steps["']?[ \t]*:`)
)

func looksLikeWorkflow(path string) bool {
	b, err := readPlain(path, sniffBytes)
	b = file.Unmarked(b)
	return err == nil && hasName.Match(b) && hasSteps.Match(b)
}

func readFound(repo, path string) FoundWorkflow {
	f := FoundWorkflow{Path: path}
	if rel, err := filepath.Rel(repo, path); err == nil && filepath.IsLocal(rel) {
		f.Path = filepath.ToSlash(rel)
	}
	var err error
	if f.WorkflowFile, err = ReadWorkflow(path, PromptPlaces{Repo: repo}); err != nil {
		f.WorkflowFile, f.Fault = nil, err.Error()
		if faults := (*FileFaults)(nil); errors.As(err, &faults) && len(faults.List) > 0 {
			f.Fault = faults.List[0].Error()
		}
		f.Fault = strings.ReplaceAll(f.Fault, path, f.Path)
	}
	return f
}

// AgentsAndPeople returns the agents of the workflow's steps, and the steps that wait for a person.
func (w *WorkflowFile) AgentsAndPeople() (agents, people []string) {
	for i := range w.Plan.Steps {
		s := &w.Plan.Steps[i]
		if s.Agent != "" && !slices.Contains(agents, s.Agent) {
			agents = append(agents, s.Agent)
		}
		if s.Human {
			people = append(people, string(s.ID))
		}
	}
	return agents, people
}
