package view

import (
	"cmp"
	"time"

	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

// QuestionView is a question that waits for a person, or waited for one.
type QuestionView struct {
	ID         string       `json:"id" doc:"q and a number"`
	Kind       string       `json:"kind" enum:"permission,question,resume,host_lost" doc:"permission: yes or no; question: words or one of the options; resume, host_lost: one of the options"`
	Agent      string       `json:"agent" doc:"Who asks"`
	Session    string       `json:"session_id" doc:"The session that asked"`
	Run        string       `json:"run_id,omitempty" doc:"The run, if the session executes a step"`
	Step       string       `json:"step_id,omitempty"`
	State      string       `json:"state" enum:"open,answered,told,withdrawn" doc:"open: it waits; answered: the agent has not received the answer yet; told: the agent has received it; withdrawn: the agent no longer needs an answer"`
	What       string       `json:"what" doc:"The program's own line, or the agent's question; untrusted text"`
	Why        string       `json:"why" doc:"Why a person is asked"`
	Tool       string       `json:"tool,omitempty" doc:"The tool that the agent wants to use"`
	Call       string       `json:"call,omitempty" doc:"The call's arguments, as JSON if possible, cut at a limit"`
	Order      string       `json:"order,omitempty" doc:"The desired state that a yes gives to the agent: its agent_state.json asked for it while a session ran that can write the file"`
	Host       string       `json:"host,omitempty" doc:"The host of the network (NAME, or NAME:PORT) that a yes lets the session reach; its program does not wait for the answer"`
	Paths      []string     `json:"paths" doc:"The files that the call concerns, as far as the program reports them"`
	Workspace  string       `json:"workspace,omitempty" doc:"The folder that the session works in"`
	Differs    []string     `json:"differs" doc:"resume: the conditions that have changed since the conversation began"`
	Options    []OptionView `json:"options" doc:"The answers that the program offers; a permission can be answered without naming one"`
	FreeText   bool         `json:"free_text" doc:"It accepts an answer as text"`
	MayStand   bool         `json:"may_stand" doc:"An answer can be saved for the session, or for always"`
	AskedAt    time.Time    `json:"asked_at" doc:"When it was asked"`
	ExpiresAt  *time.Time   `json:"expires_at" doc:"When the answer in otherwise takes effect; null: never"`
	Otherwise  string       `json:"otherwise" doc:"allow or deny, or the option: the answer at expires_at if no person has answered; empty: none"`
	Allow      *bool        `json:"allow,omitempty" doc:"The answer to a permission: true is yes"`
	Option     string       `json:"option,omitempty" doc:"The option that was chosen"`
	Text       string       `json:"text,omitempty" doc:"The answer as text"`
	Scope      string       `json:"scope,omitempty" doc:"once, session or always"`
	By         string       `json:"by,omitempty" doc:"Who answered: human/NAME, rule or time"`
	Rule       string       `json:"rule,omitempty" doc:"The rule or the saved answer that answered it"`
	AnsweredAt *time.Time   `json:"answered_at,omitempty" doc:"When it was answered"`
	Ended      string       `json:"ended,omitempty" doc:"Why the agent no longer needs an answer"`
	Hints      []string     `json:"hints" doc:"What a person should look at before answering"`
}

// OptionView is one of the answers that the program offers.
type OptionView struct {
	ID    string `json:"id" doc:"Identifies the option in an answer"`
	Kind  string `json:"kind,omitempty" doc:"allow_once, allow_always, reject_once, reject_always, or the program's own word"`
	Label string `json:"label,omitempty" doc:"The program's own words"`
}

// QuestionAnswer is a person's answer.
type QuestionAnswer struct {
	Allow  bool   `json:"allow,omitempty" doc:"Of a permission: yes"`
	Option string `json:"option,omitempty" maxLength:"500" doc:"One of the options, by its id"`
	Text   string `json:"text,omitempty" maxLength:"16384"`
	Scope  string `json:"scope,omitempty" enum:"once,session,always" doc:"How long the answer applies; default: once"`
}

// SavedAnswerView is a saved answer: it also answers later identical calls.
type SavedAnswerView struct {
	ID      string    `json:"id" doc:"s and a number"`
	Agent   string    `json:"agent" doc:"The agent whose calls it answers"`
	Session string    `json:"session_id" doc:"The answer applies until this session ends; empty: until it is revoked"`
	Tool    string    `json:"tool" doc:"The tool of the call"`
	Call    string    `json:"call" doc:"The call that was answered; the saved answer applies only to identical calls"`
	Allow   bool      `json:"allow" doc:"Yes or no"`
	By      string    `json:"by" doc:"Who gave the answer"`
	At      time.Time `json:"at" doc:"Since when"`
}

// The effect of a permission question that no person answers in time.
const (
	WordAllow = "allow"
	wordDeny  = "deny"
)

// viewQuestion converts a question into its view.
func viewQuestion(q *question.Question) QuestionView {
	v := QuestionView{
		ID: q.ID, Kind: string(q.Kind), Agent: q.Agent, Session: q.Session, State: string(q.State), What: q.What, Why: q.Why,
		Tool: q.Tool, Call: q.Call, Order: q.Order, Host: q.Host, Paths: Some(q.Paths),
		Differs: []string{}, Options: []OptionView{}, Hints: []string{},
		FreeText: q.Kind == question.Asked, MayStand: q.Kind == question.Permission && q.Key != "", AskedAt: q.AskedAt,
		ExpiresAt: Moment(q.ExpiresAt), By: q.By, Rule: q.Rule, AnsweredAt: Moment(q.AnsweredAt), Ended: q.Ended,
	}
	for _, o := range q.Options {
		v.Options = append(v.Options, OptionView(o))
	}
	if q.Kind == question.Resume {
		v.Differs, v.Paths = Some(q.Paths), []string{}
	}
	if v.ExpiresAt != nil {
		v.Otherwise = q.Default
		if q.Kind == question.Permission {
			v.Otherwise = allowWord(q.Otherwise)
		}
	}
	if q.State != question.Open && q.By != "" {
		allow := q.Allow
		if q.Kind == question.Permission {
			v.Allow = &allow
		}
		v.Option, v.Text, v.Scope = q.Option, q.Text, string(q.Scope)
	}
	return v
}

func allowWord(allow bool) string {
	if allow {
		return WordAllow
	}
	return wordDeny
}

// ViewSavedAnswer is the view of a saved answer.
func ViewSavedAnswer(s *question.SavedAnswer) SavedAnswerView {
	return SavedAnswerView{ID: s.ID, Agent: s.Agent, Session: s.Session, Tool: s.Tool, Call: s.Call, Allow: s.Allow, By: s.By, At: s.At}
}

// WantedWords says in one sentence what a person must decide.
func WantedWords(q *question.Question) string {
	switch q.Kind {
	case question.Permission:
		switch {
		case q.Order != "":
			return q.Agent + ": " + q.What
		case q.Host != "":
			return q.Agent + " wants to reach " + q.Host
		}
		what := cmp.Or(q.What, "use "+q.Tool)
		return q.Agent + " asks for permission: " + what
	case question.Resume, question.HostLost:
		return q.Agent + " waits: " + q.What
	default:
		return q.Agent + " asks: " + loop.FirstLine(q.What)
	}
}

// UsageTable is the usage that agents reported.
type UsageTable struct {
	Agents []UsageRow `json:"agents" doc:"One per agent, over the days that are kept"`
	Days   []UsageRow `json:"days" doc:"One per agent and day (UTC), newest first"`
	Runs   []UsageRow `json:"runs" doc:"One per run, newest first; archived ones, if requested, after the others"`

	Models []UsageRow `json:"models" doc:"One per model, over the days that are kept, the most expensive first; the last one, without a model, is what agents used without naming one. Together they are total."`

	Total   UsageRow `json:"total" doc:"The sum of days"`
	Budgets []Budget `json:"budgets" doc:"The daily limits of fairlead.yaml, with what was used today"`

	Archived int `json:"archived_runs" doc:"Number of archived runs, whether shown or not"`
}

// UsageRow is one line of the table.
type UsageRow struct {
	Agent        string  `json:"agent,omitempty"`
	Day          string  `json:"day,omitempty" doc:"Only in days"`
	Run          string  `json:"run_id,omitempty" doc:"Only in runs"`
	Workflow     string  `json:"workflow_name,omitempty"`
	Title        string  `json:"title,omitempty" doc:"The first line of a task's text; only in runs"`
	Archived     bool    `json:"archived,omitempty" doc:"Only in runs"`
	Model        string  `json:"model,omitempty" doc:"Only in models: as the agent's program names it; empty: no program said which"`
	Sessions     int     `json:"sessions" doc:"Number of sessions; 0 in models, as a session may use several"`
	InputTokens  int64   `json:"input_tokens" doc:"As reported"`
	OutputTokens int64   `json:"output_tokens" doc:"As reported"`
	CostUSD      float64 `json:"cost_usd" doc:"As reported"`
}

// SaysView is an agent's report about itself.
type SaysView struct {
	Text string    `json:"text" doc:"The agent's own words"`
	At   time.Time `json:"at" doc:"When the agent said it"`
}

// ConversationView is the current or last conversation with an agent's program.
type ConversationView struct {
	ID       string    `json:"id" doc:"The program's own id of it; used to resume it"`
	Session  string    `json:"session_id"`
	Program  string    `json:"program,omitempty"`
	Model    string    `json:"model,omitempty"`
	Mode     string    `json:"mode,omitempty"`
	Enforced string    `json:"enforced,omitempty" doc:"What restricts this program in fact"`
	Resumed  bool      `json:"resumed" doc:"It continues an earlier conversation"`
	At       time.Time `json:"at"`
}
