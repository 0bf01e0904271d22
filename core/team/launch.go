package team

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

// LaunchRecord describes how a process was started. A conversation is resumed under the same conditions, or a person is asked. So the
// record has what a person would have to know, and Differs names what has changed since. It has no secret: of environment variables it
// has the names.
type LaunchRecord struct {
	Driver string   `json:"driver"`
	Argv   []string `json:"argv,omitempty"` // of the program, without the parts specific to one session
	Env    []string `json:"env,omitempty"`  // names of the configured variables, sorted
	Dir    string   `json:"dir,omitempty"`
	Model  string   `json:"model,omitempty"`
	Mode   string   `json:"mode,omitempty"`
	Resume string   `json:"resume,omitempty"` // the conversation to resume
	Host   string   `json:"host,omitempty"`   // on which it runs; empty: the machine of the daemon

	Governs bool `json:"governs,omitempty"` // its sandbox lets it write fairlead.yaml, or a file that it includes
}

// Shell records that a person has a shell in the view of an agent or of a task, or not any more.
type Shell string

// The events.
const (
	ShellOpened Shell = "shell_opened"
	ShellEnded  Shell = "shell_ended"
)

const (
	launchWordsMax = 256 // of a command line, or of an environment
	launchWordMax  = 1 << 10
)

// Cut limits the size of a record. Because omissions could make different records look equal, the
// record says that it was cut.
func (r *LaunchRecord) Cut() *LaunchRecord {
	if r == nil {
		return nil
	}
	next := *r
	next.Argv, next.Env = cutWords(r.Argv), cutWords(r.Env)
	return &next
}

func cutWords(words []string) []string {
	var out []string
	for i, word := range words {
		if i == launchWordsMax {
			return append(out, fmt.Sprintf("… %d more", len(words)-i))
		}
		if len(word) > launchWordMax {
			word = clip.To(word, launchWordMax) + fmt.Sprintf("… (%d bytes)", len(word))
		}
		out = append(out, word)
	}
	return out
}

// Moved is a record as another leader would write it. before is the host that led until then, and now the one that leads; before is
// empty if the same one leads.
func (r *LaunchRecord) Moved(to FolderMove, before, now string) *LaunchRecord {
	if r == nil {
		return nil
	}
	next := *r
	next.Dir, next.Argv = to.Of(r.Dir), slices.Clone(r.Argv)
	for i, word := range next.Argv {
		next.Argv[i] = to.Of(word)
	}
	switch {
	case before != "" && r.Host == "":
		next.Host = before
	case before != "" && r.Host == now:
		next.Host = ""
	}
	return &next
}

// Differs describes how a session would be started differently than before; empty: no difference.
// Properties of one session (which conversation it resumes) do not count.
func (r *LaunchRecord) Differs(now *LaunchRecord) []string {
	if r == nil || now == nil {
		return nil
	}
	var list []string
	changed := func(what, was, is string) {
		if was != is {
			list = append(list, fmt.Sprintf("%s: %s is now %s", what, orNone(was), orNone(is)))
		}
	}
	changed("driver", r.Driver, now.Driver)
	changed("model", r.Model, now.Model)
	changed("mode", r.Mode, now.Mode)
	changed("folder", r.Dir, now.Dir)
	list = append(list, wordsDiffer("argument", r.Argv, now.Argv)...)
	return append(list, wordsDiffer("variable", r.Env, now.Env)...)
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

// wordsDiffer describes which words were added and removed or, if only the order changed, that.
func wordsDiffer(what string, was, is []string) []string {
	if slices.Equal(was, is) {
		return nil
	}
	var list []string
	gone, came := map[string]int{}, map[string]int{}
	for _, word := range was {
		gone[word]++
	}
	for _, word := range is {
		if gone[word] > 0 {
			gone[word]--
			continue
		}
		came[word]++
	}
	for _, word := range slices.Sorted(maps.Keys(gone)) {
		if gone[word] > 0 {
			list = append(list, what+" "+word+" is gone")
		}
	}
	for _, word := range slices.Sorted(maps.Keys(came)) {
		list = append(list, what+" "+word+" was added")
	}
	if len(list) == 0 {
		list = append(list, what+"s are in a different order")
	}
	return list
}
