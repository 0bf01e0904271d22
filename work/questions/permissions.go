package questions

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
)

// permissions are what an agent's configuration answers by itself: its bounds, and its patterns.
type permissions struct{ policy.Permissions }

// ownTools are the tools that we offer ourselves. What they may do is judged where they are called,
// by the token of who calls. No other tool of that server is ours: a repository may bring one of that name.
var ownTools = []string{"turn_complete", "pass", "wait", "say", "report_step", "set_status", "ask_human", "who_is_here"}

// PermissionsOf is ReadPermissions for an agent of a controller that New has made. New has read the patterns once, so they have no
// fault. Questions are rare, so the permissions are not kept for each agent.
func PermissionsOf(conf *config.Agent) permissions {
	rules, _ := ReadPermissions(conf)
	return rules
}

// ReadPermissions reads an agent's patterns. fairlead.yaml was checked, so only a caller's own configuration has a fault.
func ReadPermissions(conf *config.Agent) (b permissions, err error) {
	read := func(texts []string) (list []policy.Pattern) {
		for _, text := range texts {
			p, fault := policy.ParsePattern(text)
			if fault != nil {
				err = errors.Join(err, fmt.Errorf("permissions of agent %s: %w", conf.Name, fault))
				continue
			}
			list = append(list, p)
		}
		return list
	}
	b.Bounds, b.Deny = conf.Permissions.Bounds(), read(conf.Permissions.Deny)
	if conf.MCP {
		for _, tool := range ownTools {
			b.Allow = append(b.Allow, read([]string{"mcp__" + driver.ToolServer + "__" + tool})...)
		}
	}
	b.Allow = append(b.Allow, read(conf.Permissions.Allow)...)
	return b, err
}

// verdict is what the rules say of a call, X10 first of all; its zero value: nothing. dir is where the
// session works. doubt is why only a person can say whether the call keeps to the agent's bounds, and whether
// a denial applies to it.
func (b permissions) Verdict(call policy.Call, paths []string, dir string) (v question.Verdict, doubt string) {
	where := dispatchfolder.Where(dispatch.Dispatch{}, nil, dir)
	word, rule, doubt := b.Answer(call, paths, where, dispatchfolder.Disk{})
	if word == "" {
		return question.Verdict{}, doubt
	}
	return question.Verdict{Rule: rule, Allow: word == view.WordAllow}, ""
}

// wordAsk is the decision for a call that no rule covers: ask a person.
const wordAsk = "ask"

// AnswerTo says what an agent's program is answered by its permissions when it asks for a call: allow,
// deny, or ask, a person, and by which line, or why. Saved answers are not looked at. The error is
// a pattern that cannot be read.
func AnswerTo(conf *config.Agent, call policy.Call) (decision, reason string, err error) {
	rules, err := ReadPermissions(conf)
	if err != nil {
		return "", "", err
	}
	call.Dir = cmp.Or(call.Dir, conf.Workspace)
	where := dispatchfolder.Where(dispatch.Dispatch{}, nil, conf.Workspace)
	word, rule, doubt := rules.Answer(call, nil, where, dispatchfolder.Disk{})
	switch {
	case word != "":
		return word, rule, nil
	case doubt != "":
		return wordAsk, InDoubt + doubt, nil
	}
	return wordAsk, NoRule, nil
}

// Why a person is asked.
const (
	NoRule  = "none of its rules says whether it may"
	InDoubt = "it is unclear whether its bounds or denials forbid it: "
)
