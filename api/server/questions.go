package server

import (
	"context"
	"net/http"

	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/core/table"
)

type questionIn struct {
	ID string `path:"id" maxLength:"24" pattern:"^q[0-9]{1,20}$" example:"q17" doc:"The question"`
}

type answerQuestionIn struct {
	ID   string        `path:"id" maxLength:"24" pattern:"^q[0-9]{1,20}$" example:"q17" doc:"The question"`
	Body api.AskedBody // required: a missing answer must not count as a no
}

type savedAnswerIn struct {
	ID string `path:"id" maxLength:"24" pattern:"^s[0-9]{1,20}$" example:"s3" doc:"The saved answer"`
}

// questionRoutes returns the routes about agents' questions and usage.
func questionRoutes() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{
			"list-questions", get, "/questions", "What agents ask",
			"The questions that wait for a person, the oldest first. `/inbox` lists them together with the steps that wait. Changes are in `/events` as `question/ID`.",
			asOf(answer(handleQuestions)),
		},
		{
			"get-question", get, "/questions/{id}", "One question of an agent",
			"Also one that was answered or withdrawn, if it is one of the last 200; the journal has all.",
			asOf(answer(handleQuestion)),
		},
		{
			"answer-question", post, "/questions/{id}/answer", "Answer a question of an agent",
			"A permission is answered with `allow`; other kinds with `option`, or with `text` if the question accepts text. `scope` saves the answer for identical calls: `session` until the agent's session ends, `always` until it is revoked. The request returns when the answer is durable; the agent receives it after that. Agents may not answer (X10).",
			ordered(
				func(by caller.Identity, in *answerQuestionIn) error { return by.MayAnswer("replied", in.ID) },
				func(ctx context.Context, e *app.App, by change.Actor, in *answerQuestionIn) (uint64, error) {
					return e.Questions.AnswerQuestion(ctx, by, in.ID, view.QuestionAnswer(in.Body))
				},
			),
		},
		{
			"list-saved-answers", get, "/saved-answers", "List the saved answers",
			"A saved answer answers identical questions without asking a person. The oldest first.",
			asOf(answer(handleSavedAnswers)),
		},
		{
			"revoke-saved-answer", http.MethodDelete, "/saved-answers/{id}", "Revoke a saved answer",
			"Calls that it has allowed are not affected; the next identical call is asked about again.",
			ordered(
				func(by caller.Identity, in *savedAnswerIn) error { return by.MayAnswer("revoked", in.ID) },
				func(ctx context.Context, e *app.App, by change.Actor, in *savedAnswerIn) (uint64, error) {
					return e.Questions.RevokeSavedAnswer(ctx, by, in.ID)
				},
			),
		},
		{
			"retry-agent", post, "/agents/{name}/retry", "Retry a rate-limited provider now",
			"For a rate-limited agent: Fairlead starts it again according to its desired state, although its provider's limit has not reset yet. Agents may not do this (X10).",
			ordered(
				func(by caller.Identity, in *ableIn) error { return by.MayOrderAgent("limit_lifted", in.Name) },
				func(ctx context.Context, e *app.App, by change.Actor, in *ableIn) (uint64, error) {
					return e.Questions.LiftLimit(ctx, by, in.Name)
				},
			),
		},
		{
			"end-agent-session", post, "/agents/{name}/end", "End the session of an agent",
			"The session has the time that `grace` allows; a second request ends it at once. The desired state does not change: use `stop` first, or an agent that runs continuously is started again. Refused if no session runs, if a step of a run uses it (use `cancel`), or if the agent leads the crew (use `sleep`). Agents may not do this (X10).",
			ordered(
				func(by caller.Identity, in *ableIn) error { return by.MayOrderAgent("end_asked", in.Name) },
				func(ctx context.Context, e *app.App, by change.Actor, in *ableIn) (uint64, error) {
					return e.Agents.EndAgentSession(ctx, by, in.Name)
				},
			),
		},
		{
			"tell-agent", post, "/agents/{name}/tell", "Tell the agent of a running session something",
			"`name` is an agent, a session or a run. The text is in the journal first. A program that reads during its answer gets it at once (`at_once`). If it does not confirm that it has read it, or reads nothing during an answer, a step goes on with it after the answer (`after_answer`), and an agent that runs sessions begins its next one with it (`next_session`). `when` says what is expected. Agents may not do this (X10).",
			answer(handleTell),
		},
		{
			"open-shell", post, "/agents/{name}/shell", "Open a shell in the view of an agent or of a task",
			"For `fairlead shell`, which starts the program: the answer has the view and the whole environment of a session. The shell is over when no process holds the lock any more. Refused where no view can be made, and for a task without a folder. Only a person's program on the socket may do this, no page and no agent (X10).",
			answer(handleShell),
		},
		{
			"open-port", post, "/agents/{name}/port", "Open a port of a session",
			"For a server that an agent has started inside its wall: the answer has an address on this machine's loopback, which leads to the port as long as the session runs. `name` is an agent, a session or a task. `url` has a secret that counts once; the browser that used it has a cookie from then on, and no other program gets further. Refused where no session runs, or where it has no network of its own. Agents may not do this (X10).",
			answer(handlePort),
		},
		{
			"list-usage", get, "/usage", "List usage",
			"Tokens and cost as reported by the agents: by agent, by day (UTC), by run, by model. Archived runs are included only on request, because they require reading the whole journal.",
			asOf(answer(handleUsage)),
		},
		{
			"download-usage", get, "/usage/csv", "Download usage as CSV",
			"The days, runs and models of `/usage`, one a line. A text that a spreadsheet could take for a formula begins with an apostrophe.",
			stream("text/csv", handleUsageCSV),
		},
	}
}

func handleQuestions(ctx context.Context, s *Server, _ *nothing) (*api.Questions, error) {
	all, err := s.engine.Questions.Questions(ctx)
	for i := range all {
		noNullsIn(&all[i])
	}
	return &api.Questions{Questions: some(all)}, err
}

func handleQuestion(ctx context.Context, s *Server, in *questionIn) (*view.QuestionView, error) {
	q, err := s.engine.Questions.QuestionByID(ctx, in.ID)
	noNullsIn(&q)
	return &q, err
}

func handleSavedAnswers(ctx context.Context, s *Server, _ *nothing) (*api.SavedAnswers, error) {
	all, err := s.engine.Questions.SavedAnswers(ctx)
	return &api.SavedAnswers{Saved: some(all)}, err
}

type tellIn struct {
	Name string `path:"name" maxLength:"128" doc:"An agent, a session or a run"`
	Body struct {
		Text string `json:"text" minLength:"1" maxLength:"16384"`
	}
}

func handleTell(ctx context.Context, s *Server, in *tellIn) (*view.TellResult, error) {
	if err := identity(ctx).MayOrderAgent("person_told", in.Name); err != nil {
		return nil, err
	}
	told, err := s.engine.Agents.TellRunning(ctx, s.actor(ctx), in.Name, in.Body.Text)
	return &told, err
}

type shellIn struct {
	Name string `path:"name" maxLength:"64" pattern:"^[A-Za-z0-9_][A-Za-z0-9._-]*$" example:"T1" doc:"An agent or a task"`
	Body *api.EmptyBody
}

func handleShell(ctx context.Context, s *Server, in *shellIn) (*view.Shell, error) {
	if err := identity(ctx).MayOpenShell(in.Name); err != nil {
		return nil, err
	}
	if ctx.Value(entranceKey{}) != entranceSocket { // the answer has the secrets of the agent's environment
		return nil, &table.Refusal{
			Subject: in.Name, Event: "open_shell", State: "asked over TCP", Row: "X10",
			Reason: "a shell is opened by `fairlead shell` on this machine",
		}
	}
	shell, err := s.engine.Runs.OpenShell(ctx, s.actor(ctx), in.Name)
	shell.Env, shell.Notes = some(shell.Env), some(shell.Notes)
	return &shell, err
}

type portIn struct {
	Name string `path:"name" maxLength:"64" pattern:"^[A-Za-z0-9_][A-Za-z0-9._-]*$" example:"coder" doc:"An agent, a session or a task"`
	Body struct {
		Port int `json:"port" minimum:"1" maximum:"65535" example:"3000" doc:"At which a program of the session listens"`
	}
}

func handlePort(ctx context.Context, s *Server, in *portIn) (*view.OpenedPort, error) {
	if err := identity(ctx).MayOpenPort(in.Name); err != nil {
		return nil, err
	}
	opened, err := s.engine.Network.OpenPort(ctx, in.Name, in.Body.Port)
	return &opened, err
}

type usageIn struct {
	Archived bool `query:"archived" doc:"Also the usage of archived runs"`
}

func handleUsage(ctx context.Context, s *Server, in *usageIn) (*view.UsageTable, error) {
	used, err := s.engine.Status.Usage(ctx, in.Archived)
	used.Agents, used.Days, used.Runs, used.Models, used.Budgets = some(used.Agents), some(used.Days), some(used.Runs), some(used.Models),
		some(used.Budgets)
	return &used, err
}

func handleUsageCSV(s *Server, w http.ResponseWriter, r *http.Request, in *usageIn) {
	ctx, cancel := context.WithTimeout(r.Context(), api.AnswerMax)
	defer cancel()
	used, err := s.engine.Status.Usage(ctx, in.Archived)
	if err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="usage.csv"`)
	_, _ = w.Write(view.UsageCSV(used)) // the reader may have gone
}

// noNullsIn replaces the lists of a question that are nil by empty ones.
func noNullsIn(q *view.QuestionView) {
	q.Paths, q.Differs, q.Options, q.Hints = some(q.Paths), some(q.Differs), some(q.Options), some(q.Hints)
}
