package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/process/shim"
)

// lookAtDispatches says of open dispatches in Claude Code whose entry in the user's state folder is missing or leads elsewhere.
func lookAtDispatches(dir string) (findings []Finding) {
	wrong, err := dispatchfolder.Untied(dir)
	if err != nil {
		return []Finding{{About: "dispatches", What: err.Error(), Do: "look into .claude/agent-state-machine"}}
	}
	for _, one := range wrong {
		findings = append(findings, Finding{
			About: "dispatches", What: cli.Plain(one.Error()),
			Do: "a program may have removed or changed it. In its project MAIN's rules hold all the same; `fairlead dispatch end` ends the dispatch, and the next one has an entry again",
		})
	}
	return findings
}

// lookAtModes says which files of the state other users may read. A daemon makes them private again within a second.
func lookAtModes(dir string) Finding {
	open := workspace.OpenToOthers(dir)
	if len(open) == 0 {
		return Finding{OK: true, About: "state", What: "no other user may read it"}
	}
	return Finding{
		About: "state", What: "other users may have read " + strings.Join(open, ", "),
		Do:  "`fairlead doctor --fix` makes it private again; delete .fairlead/token while no daemon runs to get another one",
		Fix: func(context.Context) (string, error) { return "it is private again", workspace.MakePrivate(dir) },
	}
}

// recordedEnd is what the journal holds of a session that has ended.
type recordedEnd struct {
	EndedAt *time.Time `json:"ended_at"`
	Bytes   int64      `json:"bytes"` // of its output
}

// lookAtSpool compares the length of a session's output with the one that was recorded when it ended. The content is not
// compared: the journal holds no hash of it.
func lookAtSpool(folder string, end recordedEnd) []Finding {
	if end.EndedAt == nil || end.EndedAt.IsZero() || end.Bytes == 0 {
		return nil
	}
	if has, err := shim.OutputBytes(folder); err == nil && has != end.Bytes {
		return []Finding{{
			About: "session " + filepath.Base(folder),
			What: fmt.Sprintf("its output has %d bytes, and had %d when the session ended: a program has changed it since", has,
				end.Bytes),
			Do: "what the journal says of it holds; do not rely on the text of its output",
		}}
	}
	return nil
}
