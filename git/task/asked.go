package task

import (
	"context"
	"fmt"
	"strings"

	state "github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/git/worktree"
)

// AskedEnv is the environment variable in which the step land finds what a person has approved, as Asked.String writes it.
const AskedEnv = "FAIRLEAD_TASK_APPROVED"

// BaseEnv is the environment variable in which the step land finds the branch on which the task lands, as the journal has it.
const BaseEnv = "FAIRLEAD_TASK_BASE"

// MetricSilent is a metric of StepWork that Fairlead adds: "true" if the agent's answer ended well and without a word; otherwise none.
const MetricSilent = "ended_silent"

// Asked is what a person is asked about. An approval is for exactly this.
type Asked = state.Asked

// ParseAsked reads what Asked.String wrote. It is empty if the text is not of that form.
func ParseAsked(text string) Asked {
	words := strings.Fields(text)
	if len(words) != 3 || commits(words...) != nil {
		return Asked{}
	}
	return Asked{Tree: words[0], Commit: words[1], From: words[2]}
}

// Again says that a person has to look again before it can land. Nothing was changed.
type Again struct{ Why string }

func (e *Again) Error() string { return e.Why }

// approved is the commit with the content that a person has approved. The repository of another machine may not have the
// commit that was shown there: then it is a picture of the folder here, which must have the same content.
func (t Task) approved(ctx context.Context) (commit string, err error) {
	if t.Asked == (Asked{}) {
		return "", &Blocked{"it has not been shown to a person yet"}
	}
	switch is, err := t.ask(ctx, nil, "rev-parse", "--verify", "--quiet", t.Asked.Commit+"^{tree}"); {
	case err == nil && is == t.Asked.Tree:
		return t.Asked.Commit, nil
	case err == nil:
		return "", &Again{fmt.Sprintf("commit %.10s does not have the content that was shown, tree %.10s", t.Asked.Commit, t.Asked.Tree)}
	case !worktree.GitSaidNo(err):
		return "", err
	}
	p, err := t.asAsked(ctx)
	if err != nil {
		return "", err
	}
	if p.Tree != t.Asked.Tree {
		return "", &Again{"another machine has shown it to a person, and the files here are not the same"}
	}
	return p.Commit, nil
}

// applied is the content of tip with the changes that were shown, and with no others: the base branch may have commits, or
// may have lost some, that the task's commits know nothing of.
func applied(ctx context.Context, t Task, tip string) (tree string, err error) {
	if tip == t.Asked.From {
		return t.Asked.Tree, nil
	}
	// or the repository does not have it
	if _, err := t.ask(ctx, nil, "merge-base", "--is-ancestor", t.Asked.From, tip); worktree.GitSaidNo(err) {
		return "", &Again{fmt.Sprintf("branch %s no longer has commit %.10s, on which this was shown, so other changes than those would come with it", t.Base, t.Asked.From)}
	} else if err != nil {
		return "", err
	}
	now, err := t.treeOf(ctx, tip)
	if err != nil {
		return "", err
	}
	var sides [2]string // with the commit that it was compared with as their only common ancestor
	for i, tree := range []string{now, t.Asked.Tree} {
		if sides[i], err = t.commit(ctx, byFairlead, tree, t.Title(), t.Asked.From); err != nil {
			return "", err
		}
	}
	return t.merged(ctx, sides[0], sides[1])
}
