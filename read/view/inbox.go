package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/team"
)

// InboxItem is one thing that needs a person.
type InboxItem struct {
	ID       string    `json:"id" doc:"Names the item as long as it waits; another question about the same step has another id"`
	Kind     string    `json:"kind" enum:"step,permission,question,resume,host_lost,failed,run,limit,branch,config,fetch,login,billing" doc:"step: a step of a run waits for an answer; permission: an agent asks to be allowed a call; question: an agent asks for a text; resume: its conversation would continue under changed conditions; host_lost: the host of its step was lost; failed: it gave up and a person should look; run: a run failed, and no newer run of its workflow was started; limit: a daily limit is used up and stops work; branch: a branch lacks commits of a host that led before; config: fairlead.yaml was changed while an agent ran that may write it, and is not obeyed until a person confirms the change; fetch: tasks.fetch has stopped after a failure; login: the provider of an agent that runs rejects its login; billing: it refuses the agent, because no credit or quota is left"`
	Run      string    `json:"run_id"`
	Step     string    `json:"step_id"`
	Workflow string    `json:"workflow_name"`
	Since    time.Time `json:"since"`
	Why      string    `json:"why"`
	Blocks   []string  `json:"blocks" doc:"Tasks and agents that wait until this is answered"`

	Path        string   `json:"manual_input_path" doc:"The answer can also be written to this path as a JSON file"`
	InputSchema string   `json:"input_schema,omitempty"`
	BadInput    string   `json:"bad_input,omitempty"`
	Artifacts   []string `json:"artifacts"`
	Logs        []string `json:"logs"`

	Agent    string        `json:"agent,omitempty" doc:"The agent that asks, prepared the step, or failed"`
	Session  string        `json:"session_id,omitempty" doc:"The session that asks, or the last one before the failure: its output has more"`
	Question *QuestionView `json:"question,omitempty" doc:"For permission, question and resume"`
	Task     *TaskView     `json:"task,omitempty" doc:"If the run is a task"`
	Error    string        `json:"error,omitempty" doc:"run: the error of the step that failed"`

	Unconfirmed *Unconfirmed `json:"unconfirmed,omitempty" doc:"config: the change"`

	Metrics map[string]string `json:"metrics,omitempty" doc:"step: as the step reported"`
	Made    []InboxStep       `json:"made,omitempty" doc:"step: the results of the steps that it needs"`
	Files   []InboxFile       `json:"files,omitempty" doc:"step: the beginning of its artifacts; only in the inbox"`
	Then    []string          `json:"then,omitempty" doc:"step: the steps that wait for it"`
	BackTo  string            `json:"back_to,omitempty" doc:"step: where a rejection leads back to; empty: the step fails"`
	Shown   string            `json:"shown,omitempty" doc:"step: names what is shown here, artifacts included. Sent with the answer, the answer is refused if it was changed meanwhile"`
}

// Unconfirmed is a change of fairlead.yaml, or of files that it includes, which no person has confirmed.
type Unconfirmed struct {
	Sum   string   `json:"governing" doc:"The hash to confirm it with"`
	Files []string `json:"files" doc:"That differ from those in force"`
	Diff  string   `json:"diff" doc:"At most 16 KiB; values of environments and of notify are hidden"`
}

// InboxStep is the result of a step that was done before a person is asked.
type InboxStep struct {
	ID        string            `json:"step_id"`
	Agent     string            `json:"agent,omitempty"`
	Status    string            `json:"status"`
	Artifacts []string          `json:"artifacts"`
	Metrics   map[string]string `json:"metrics,omitempty"`
	Logs      []string          `json:"logs" doc:"The last ones"`
}

// InboxFile is the beginning of an artifact. Its name and its text are untrusted.
type InboxFile struct {
	Name  string `json:"name" doc:"As the report names it"`
	Bytes int64  `json:"bytes"`
	Text  string `json:"text,omitempty" doc:"At most 4 KiB"`
	Cut   bool   `json:"cut,omitempty" doc:"The file has more"`
	Why   string `json:"why,omitempty" doc:"Why there is no text"`
	Sum   string `json:"sha256,omitempty" doc:"Of the whole file; empty if it is larger than 4 MiB"`
}

// Kinds of inbox items besides those of questions. A new order for the agent removes InboxFailed.
const (
	InboxStepWaits = "step"
	InboxFailed    = "failed"
	InboxRun       = "run"
	InboxLimit     = "limit"
	InboxBranch    = "branch"
	InboxConfig    = "config"
	InboxFetch     = "fetch"
	InboxLogin     = "login"
	InboxBilling   = "billing"
)

// InboxQuestion is a question as an item of the inbox.
func InboxQuestion(q *question.Question, s *team.Session) InboxItem {
	v := viewQuestion(q)
	item := InboxItem{
		ID: "question/" + q.ID, Kind: v.Kind, Agent: v.Agent, Session: v.Session, Since: v.AskedAt, Why: WantedWords(q),
		Blocks: []string{}, Artifacts: []string{}, Logs: []string{},
	}
	if s != nil {
		v.Run, v.Step, _ = team.StepOf(s.For)
		item.Run, item.Step = v.Run, v.Step
	}
	item.Question = &v
	return item
}

// ByNeed sorts what needs a person: first what holds up other work, then what waits for an answer, then
// what only has to be known. Within each, the longest wait comes first.
func ByNeed(items []InboxItem) {
	slices.SortStableFunc(items, func(a, b InboxItem) int {
		return cmp.Or(
			cmp.Compare(a.rank(), b.rank()),
			a.Since.Compare(b.Since),
			cmp.Compare(len(b.Blocks), len(a.Blocks)),
			cmp.Compare(a.ID, b.ID),
		)
	})
}

func (i *InboxItem) rank() int {
	switch {
	case len(i.Blocks) > 0:
		return 0
	case i.Kind == InboxFailed, i.Kind == InboxRun, i.Kind == InboxLimit, i.Kind == InboxBranch, i.Kind == InboxFetch:
		return 2
	default:
		return 1
	}
}

// Blocked fills in what waits for each item: tasks that come after the task it is about, and tasks that are
// queued for the agent that asks.
func Blocked(items []InboxItem, runs []RunView) {
	for i := range items {
		item := &items[i]
		if item.Kind == InboxLimit {
			continue // who it stops is known already
		}
		item.Blocks = []string{}
		for _, r := range runs {
			t := r.Task
			if t == nil || r.ID == item.Run {
				continue
			}
			after := t.Status == TaskBlocked && item.Run != "" && slices.Contains(t.After, item.Run)
			queued := t.Status == TaskQueued && item.Question != nil && t.Agent == item.Agent
			if after || queued {
				item.Blocks = append(item.Blocks, r.ID)
			}
		}
		slices.Sort(item.Blocks)
	}
}

// LimitItems lists the daily limits that stop agents from working, each once.
func LimitItems(agents []AgentView) []InboxItem {
	items := []InboxItem{}
	for i := range agents {
		a := &agents[i]
		wants := a.DesiredState != "pause" || a.WaitingBehind != "" || a.SetBy == control.ByFairlead
		if a.IdleReason != IdleLimit || !wants || a.Removed {
			continue
		}
		id := "limit/agent/" + a.Name
		if a.LimitOfTeam {
			id = "limit/team"
		}
		if at := slices.IndexFunc(items, func(one InboxItem) bool { return one.ID == id }); at >= 0 {
			items[at].Blocks = append(items[at].Blocks, a.Name)
			if a.Timestamp.Before(items[at].Since) {
				items[at].Since = a.Timestamp
			}
			continue
		}
		items = append(items, InboxItem{
			ID: id, Kind: InboxLimit, Agent: a.Name, Since: a.Timestamp, Why: a.OverLimit + " is reached", Blocks: []string{a.Name},
			Artifacts: []string{}, Logs: []string{},
		})
	}
	return items
}

// billingRemedy is what a person does about an account without credit or quota.
const billingRemedy = "add credit or raise the limit of its account at the provider, or put the key of another account into its `env`"

// ProviderItems lists the sessions whose provider refuses them until a person does something: it rejects their login, or no credit is
// left. signIn says how a person signs in to an agent's program.
func ProviderItems(agents []AgentView, signIn func(agent string) string) []InboxItem {
	items := []InboxItem{}
	for i := range agents {
		a := &agents[i]
		for _, s := range a.Sessions {
			item := InboxItem{Agent: a.Name, Session: s.ID, Blocks: []string{}, Artifacts: []string{}, Logs: []string{}}
			switch {
			case s.Provider != nil && s.Provider.Code == "authentication":
				item.Kind, item.Why = InboxLogin, signIn(a.Name)
			case s.Provider != nil && s.Provider.Code == "billing":
				item.Kind, item.Why = InboxBilling, billingRemedy
			default:
				continue
			}
			item.ID, item.Since = item.Kind+"/"+s.ID, s.Provider.Since
			item.Why = s.Provider.Words() + "; " + item.Why + afterRemedy(a.Name, s.For)
			items = append(items, item)
		}
	}
	return items
}

// afterRemedy says how the work goes on after a person has done what the provider wants: most programs read a login only at their start.
func afterRemedy(agent string, of team.Purpose) string {
	switch run, _, step := team.StepOf(of); {
	case of == team.ForControl:
		return ", then `fairlead stop " + agent + " --now`, and order it again"
	case step:
		return ", then `fairlead run resume " + run + "` if the step has failed"
	}
	return ", then end this session"
}

// ConfigItem is a change of fairlead.yaml that waits for a person.
func ConfigItem(since time.Time, u *Unconfirmed) InboxItem {
	return InboxItem{
		ID: "config/" + u.Sum, Kind: InboxConfig, Since: since, Blocks: []string{}, Artifacts: []string{}, Logs: []string{}, Unconfirmed: u,
		Why: "fairlead.yaml was changed while an agent ran that may write it; what was confirmed before stays in force until a person confirms the change",
	}
}

// FetchItem is a fetch by tasks.fetch that failed, after which it fetches no more.
func FetchItem(since time.Time, why string) InboxItem {
	return InboxItem{
		ID: "fetch/" + since.UTC().Format(time.RFC3339), Kind: InboxFetch, Since: since,
		Blocks: []string{}, Artifacts: []string{}, Logs: []string{},
		Why: why + "; it goes on after `fairlead reload`, or a `fairlead task sync` that works",
	}
}

// BranchItems are branches that cannot be brought from hosts that led before.
func BranchItems(left []Left) (items []InboxItem) {
	for _, l := range named(left) {
		items = append(items,
			InboxItem{
				ID: "branch/" + l.Host + "/" + l.Branch, Kind: InboxBranch, Since: l.Since, Why: l.Why, Blocks: []string{},
				Artifacts: []string{}, Logs: []string{},
			})
	}
	return items
}
