package listen

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/work/questions"

	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// CallOf reads a tool call from a fact. Drivers pass on the words of their program, and CallOf knows
// the words of the supported programs. A call in other words is not understood, and the policy
// denies it to MAIN.
func CallOf(fact driver.Fact) policy.Call {
	call := policy.Call{Tool: fact.Tool}
	if len(fact.Args) > 0 && fact.Args[0] == '{' { // otherwise they are no arguments
		call.Input = fact.Args
	}
	switch fact.Tool { // the steps of a test script
	case "write", "append":
		call.Tool = "Write"
	case "edit":
		call.Tool = "Edit"
	case "run", "spawn":
		call.Tool = "Bash"
		if call.Input == nil {
			call.Input = argument("command", fact.Text)
		}
	}
	if call.Input == nil && call.Tool != fact.Tool {
		call.Input = argument("file_path", fact.Text)
	}
	if call.Input == nil {
		call.Input = json.RawMessage("{}")
	}
	return call
}

func argument(name, value string) json.RawMessage {
	text, _ := json.Marshal(map[string]string{name: value}) // marshalling strings cannot fail
	return text
}

// judged applies the current rules to a call.
func (t *dispatchListener) judged(fact driver.Fact) (policy.Call, policy.Verdict) {
	call := CallOf(fact)
	if now, err := t.j.Folder.Session(); err == nil {
		t.j.Session = now // the files that the user named and the permissions may have changed since the start
	}
	s := t.j.Session
	if s.Open == nil || s.Open.N != t.j.Work.Conversation {
		return call, policy.Deny(policy.DeniedMain, "its conversation is over")
	}
	call.Dir = t.m.Conf.Workspace
	verdict := dispatchfolder.JudgeAs(s, t.j.Folder, t.e.opts.Config.Dir, t.j.Main(), call)
	if verdict.Allow {
		verdict = dispatchfolder.Narrowed(verdict, questions.PermissionsOf(t.m.Conf).Bounds, s, t.j.Folder, t.m.Conf.Workspace,
			t.j.Main(), call, fact.Ask.Paths)
	}
	return call, verdict
}

// asked answers a permission request by the rules (D8, D9). If the required answer is not among the
// options, the request is cancelled, so that the agent does not wait without end.
func (t *dispatchListener) asked(ctx context.Context, fact driver.Fact) {
	call, verdict := t.judged(fact)
	if len(CutIn(fact)) > 0 && verdict.Allow {
		verdict = policy.Deny(policy.DeniedMain, tooLong)
	}
	if !verdict.Allow {
		t.deny(fact, call, verdict, false)
	}
	var err error
	if option, found := OptionFor(fact.Ask.Options, verdict.Allow); found {
		err = t.conv.Answer(ctx, fact.Ask.ID, option)
	} else {
		t.remark("%s: it asked for permission, and offered no answer that says %s; it is told to stop", call.Tool,
			map[bool]string{true: "yes", false: "no"}[verdict.Allow])
		err = t.conv.Cancel(ctx)
	}
	if err != nil && !errors.Is(err, driver.ErrNoAnswer) && ctx.Err() == nil && !t.gone() {
		t.e.log.Error("an agent's question could not be answered", "session", t.s.ID, "error", err)
	}
}

// tooLong is the reason to deny a call whose arguments are not known completely.
const tooLong = "its arguments are not known completely, or too long to be judged; do it in smaller steps"

// OptionFor chooses an answer by its kind. It prefers "once" to "always", so that an answer grants
// nothing for later calls.
func OptionFor(options []driver.Option, allow bool) (id string, found bool) {
	kinds := []string{"reject_once", "reject_always"}
	if allow {
		kinds = []string{"allow_once", "allow_always"}
	}
	for _, kind := range kinds {
		for _, o := range options {
			if o.Kind == kind {
				return o.ID, true
			}
		}
	}
	return "", false
}

// called judges a call that the agent made without asking. If the rules deny it, the call is
// recorded and MAIN's round ends, because the call cannot be undone.
func (t *dispatchListener) called(fact driver.Fact) (some bool) {
	call, verdict := t.judged(fact)
	if t.j.Main() && verdict.Allow && len(CutIn(fact)) > 0 {
		verdict = policy.Deny(policy.DeniedMain, tooLong)
	}
	if verdict.Allow {
		return false
	}
	t.deny(fact, call, verdict, true)
	if t.j.Main() {
		t.end(fmt.Sprintf("%s used %s without asking, which its permissions do not allow: %s. What it has done is not undone: look at the repository", dispatch.Main, call.Tool, verdict.Reason))
	}
	return true
}

// deny records a call that the rules do not allow.
func (t *dispatchListener) deny(fact driver.Fact, call policy.Call, verdict policy.Verdict, afterwards bool) {
	by, done := t.act(fact.Offset, string(fact.Kind)+" "+fact.Ask.ID+" "+call.Tool+" "+string(call.Input))
	if done {
		return
	}
	if t.denials++; t.denials > denialsMax {
		t.end(fmt.Sprintf("it was denied more than %d calls in one session", denialsMax))
		return
	}
	reason := verdict.Reason
	if afterwards {
		reason = "it did not ask first: " + reason
	}
	in := dispatch.Deny{
		Conversation: t.j.Work.Conversation, Task: t.j.Work.Task, Tool: call.Tool,
		Call: clip.Text(cmp.Or(questions.Shown(call.Input), fact.Text), 1000),
		Row:  cmp.Or(verdict.Row, "D8"), Reason: reason, Capability: verdict.Capability, Afterwards: afterwards,
	}
	if verdict.Code != policy.DeniedProtected {
		in.Delegate = dispatchfolder.Best(t.j.Session, cmp.Or(verdict.Capability, t.j.Work.Text)).Best
	}
	t.do(by, in, func(refused *table.Refusal) { t.remark("%s was denied: %s", call.Tool, reason) })
}
