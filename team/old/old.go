// Package old reads changes that older versions of Fairlead wrote: they have reasons as sentences,
// without codes. It is the one place that reads those sentences, once for each change that is
// replayed.
//
// The one promise: a change of the present version stays as it is.
package old

import (
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/team"
)

// oldEndings maps the whole sentence of an older version to its code.
var oldEndings = map[string]team.EndReason{
	"its report was read":                         team.EndReported,
	"fairlead was asked to stop":                  team.EndShutdown,
	"nobody has anything to tell it in a channel": team.EndIdle,
	"it does not lead the team any more":          team.EndNotLead,
	"it is disabled":                              team.EndDisabled,
	"the conversation that it was for is over":    team.EndConversation,
	"its program is no longer configured":         team.EndUnconfigured,
}

// oldEndingStarts maps how such a sentence begins to its code, where it goes on with a name.
var oldEndingStarts = map[string]team.EndReason{
	"limit reached: ":     team.EndLimit,
	"ended by ":           team.EndByPerson,
	"put to sleep by ":    team.EndSleep,
	"sent back: ":         team.EndAttemptOver,
	"cancelled by ":       team.EndAttemptOver,
	"the run starts over": team.EndAttemptOver,
}

const (
	byEngine = "engine"

	oldLimit      = "limit reached: "          // begins why a limit paused a run
	oldPermission = "it asks for permission: " // begins why a turn waits for an answer

	oldOneDenied  = "1 call was denied: "
	oldSomeDenied = " calls were denied: " // follows the number
	oldNotAsked   = "it did not ask for what its rules deny: "
)

// Decode adds the codes that a change of an older version lacks. A change that has them stays
// as it is.
func Decode(ch *team.Change) {
	if s := ch.Body.Session; s != nil && s.Ending != "" && s.EndReason == "" {
		s.EndReason = oldEnding(s.Ending)
	}
	if run := ch.Body.Run; run != nil {
		decodeOldRun(run)
	}
	if set := ch.Body.Turn; set != nil && set.Body.Head != nil {
		if l := &set.Body.Head.Lease; l.Why != "" && l.WaitReason == "" && strings.HasPrefix(l.Why, oldPermission) {
			l.WaitReason = channel.WaitPermission
		}
	}
}

func decodeOldRun(run *workflow.Body) {
	if h := run.Head; h != nil && h.Stage == workflow.Paused && h.PauseReason == "" && h.By == byEngine && strings.HasPrefix(h.Why, oldLimit) {
		h.PauseReason = workflow.PausedByLimit
	}
	if set := run.Step; set != nil && set.Facts != nil && set.Facts.Denied == nil {
		set.Facts.Denied = oldDenied(set.Facts.Logs)
	}
	if set := run.Step; set != nil && set.Value.Ending != "" && set.Value.EndReason == "" {
		set.Value.EndReason = workflow.EndOver
		if oldEnding(set.Value.Ending) == team.EndReported {
			set.Value.EndReason = workflow.EndReported
		}
	}
}

// oldDenied finds the sentences about denied calls among the last two lines of a step's logs, where
// older versions kept them. The result is never nil.
func oldDenied(logs []string) []string {
	found := []string{}
	for _, line := range logs[max(0, len(logs)-2):] {
		n, _, many := strings.Cut(line, oldSomeDenied)
		if _, err := strconv.Atoi(n); many && err == nil || strings.HasPrefix(line, oldOneDenied) || strings.HasPrefix(line, oldNotAsked) {
			found = append(found, line)
		}
	}
	return found
}

func oldEnding(words string) team.EndReason {
	if reason, ok := oldEndings[words]; ok {
		return reason
	}
	for start, reason := range oldEndingStarts {
		if strings.HasPrefix(words, start) {
			return reason
		}
	}
	return team.EndOther
}
