package questions

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/read/view"
)

// outsideMax is how many files outside of a workspace are listed by name.
const outsideMax = 5

// hints point out what a person should check in a call, with the patterns of the calls that each
// applies to. They come from the parser that judges calls, never from the program's description. The
// parser does not see everything: a call without hints is not known to be safe.
var hints = []struct {
	words string
	calls []policy.Pattern
}{
	{
		"it deletes files",
		patterns("Bash(rm *)", "Bash(rmdir *)", "Bash(unlink *)", "Bash(shred *)", "Bash(truncate *)", "Bash(git clean *)",
			"Bash(git reset --hard*)", "Bash(git rm *)", "Bash(find * -delete*)"),
	},
	{"it accesses the network", patterns(
		"WebFetch", "WebSearch", "Bash(curl *)", "Bash(wget *)", "Bash(ssh *)", "Bash(scp *)", "Bash(rsync *)", "Bash(nc *)",
		"Bash(git push *)", "Bash(git fetch *)", "Bash(git pull *)", "Bash(git clone *)",
		"Bash(npm install *)", "Bash(npm i *)", "Bash(npm ci *)", "Bash(npx *)", "Bash(pip install *)", "Bash(pip3 install *)",
		"Bash(cargo install *)", "Bash(go get *)", "Bash(go install *)", "Bash(apt *)", "Bash(apt-get *)", "Bash(brew *)",
	)},
	{"it acts as another user", patterns("Bash(sudo *)", "Bash(su *)", "Bash(doas *)")},
}

func patterns(texts ...string) []policy.Pattern {
	list := make([]policy.Pattern, len(texts))
	for i, text := range texts {
		p, err := policy.ParsePattern(text)
		if err != nil {
			panic("questions: the pattern of a hint: " + err.Error())
		}
		list[i] = p
	}
	return list
}

// withHints adds to questions what a person should check before an answer. It reads the disk, so it
// runs outside of the loop.
func withHints(all []view.QuestionView) []view.QuestionView {
	for i := range all {
		all[i].Hints = view.Some(HintsOf(&all[i]))
	}
	return all
}

// HintsOf returns what a person should check before an answer to a question: at most one line for each
// kind of call, and one for each of the first five files. Only permissions have hints.
func HintsOf(q *view.QuestionView) []string {
	if q.Kind != string(question.Permission) {
		return nil
	}
	var list []string
	input, readable := argsOf(q)
	call := policy.Call{Tool: q.Tool, Input: input, Dir: q.Workspace}
	where := policy.Where{Repo: q.Workspace}
	if q.Call != "" && !readable && (strings.HasSuffix(q.Call, "…") || strings.HasSuffix(q.Call, "(cut)")) {
		list = append(list, "the call is too long and is not shown completely")
	}
	if filepath.IsAbs(q.Workspace) {
		for _, hint := range hints {
			if policy.Covers(hint.calls, call, where, dispatchfolder.Disk{}) {
				list = append(list, hint.words)
			}
		}
	}
	outside := outsideOf(q, call, where, readable)
	for _, path := range outside[:min(len(outside), outsideMax)] {
		list = append(list, "outside the agent's workspace: "+path)
	}
	if len(outside) > outsideMax {
		list = append(list, "and other files outside the agent's workspace")
	}
	return list
}

// argsOf returns a call's arguments: JSON, or the one relevant argument as plain text.
func argsOf(q *view.QuestionView) (args json.RawMessage, readable bool) {
	text := strings.TrimSpace(q.Call)
	if json.Valid([]byte(text)) && strings.HasPrefix(text, "{") {
		return json.RawMessage(text), true
	}
	name := ""
	switch {
	case text == "" || strings.HasSuffix(text, "…") || strings.HasSuffix(text, "(cut)"):
	case q.Tool == "Bash":
		name = "command"
	case slices.Contains(fileTools, q.Tool):
		name = "file_path"
	case q.Tool == "WebFetch" || q.Tool == "WebSearch":
		name = "url"
	}
	if name == "" {
		return nil, false
	}
	encoded, err := json.Marshal(map[string]string{name: text})
	return encoded, err == nil
}

// fileTools are the tools whose arguments name one file to change or read.
var fileTools = []string{"Write", "Edit", "MultiEdit", "NotebookEdit", "Read"}

// outsideOf returns the known files of a call that are outside of the workspace: those that the
// program names, those in the arguments, and those that a command is known to write.
func outsideOf(q *view.QuestionView, call policy.Call, where policy.Where, readable bool) []string {
	if !filepath.IsAbs(q.Workspace) {
		return nil
	}
	paths := slices.Clone(q.Paths)
	if readable && slices.Contains(fileTools, q.Tool) {
		var args struct {
			File     string `json:"file_path"`
			Notebook string `json:"notebook_path"`
		}
		if json.Unmarshal(call.Input, &args) == nil {
			paths = append(paths, args.File, args.Notebook)
		}
	}
	root := endOf(q.Workspace)
	var outside []string
	for _, path := range paths {
		if path == "" {
			continue
		}
		if !filepath.IsAbs(path) {
			path = q.Workspace + "/" + path // not filepath.Join: ".." after a symbolic link leads elsewhere
		}
		outside = appendOutside(outside, root, endOf(path))
	}
	if readable && q.Tool == "Bash" {
		for _, path := range policy.Judge(policy.AgentRules(), false, call, where, dispatchfolder.Disk{}).Writes {
			outside = appendOutside(outside, root, path)
		}
	}
	return outside
}

func appendOutside(list []string, root, path string) []string {
	rel, err := filepath.Rel(root, path)
	inside := err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
	if inside || strings.HasPrefix(path, "/dev/") || slices.Contains(list, path) {
		return list
	}
	return append(list, path)
}

// endOf resolves a path; if that is impossible, it returns the path unchanged.
func endOf(path string) string {
	if file, err := (dispatchfolder.Disk{}).Look(path); err == nil {
		return file.Path
	}
	return filepath.Clean(path)
}
