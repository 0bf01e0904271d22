package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/read/view"
	crewctl "github.com/fairlead-dev/fairlead/work/crew"
	"github.com/fairlead-dev/fairlead/work/runs"
)

// Channels has the requests about the channels: their entries, and what a person says or orders in them.
type Channels struct{ client *Client }

// List returns all channels, sorted by name.
func (c Channels) List(ctx context.Context) (api.Channels, error) {
	return Get[api.Channels](ctx, c.client, "/channels", nil)
}

// Show returns one channel. For an unknown name the error is a *Problem with status 404 and the
// known names.
func (c Channels) Show(ctx context.Context, name string) (view.ChannelView, error) {
	return Get[view.ChannelView](ctx, c.client, channelPath(name, ""), nil)
}

// Entries returns a part of a channel's entries, oldest first. Limit 0 means the server's
// default.
func (c Channels) Entries(ctx context.Context, name string, q view.EntryQuery) (view.ChannelPage, error) {
	return Get[view.ChannelPage](ctx, c.client, channelPath(name, "/entries"), queryOf(q))
}

// Say sends a person's message to a channel; an empty mode means the channel's default. It returns
// when the message is durable. The error is a *Refused if the state does not allow it.
func (c Channels) Say(ctx context.Context, channel, text, mode string) (view.Spoken, error) {
	return Post[view.Spoken](ctx, c.client, channelPath(channel, "/messages"), api.SayBody{Text: text, Mode: mode})
}

// Grant gives an agent the turn. With now, also if another agent has it.
func (c Channels) Grant(ctx context.Context, channel, agent string, now bool) (api.ChannelOrdered, error) {
	return Post[api.ChannelOrdered](ctx, c.client, channelPath(channel, "/grant"), api.GrantBody{Agent: agent, Now: now})
}

// Skip ends a turn; 0 means the current turn.
func (c Channels) Skip(ctx context.Context, channel string, turn uint64) (api.ChannelOrdered, error) {
	return Post[api.ChannelOrdered](ctx, c.client, channelPath(channel, "/skip"), api.SkipBody{Turn: turn})
}

// Override ends a wait: the turn continues or is forfeited.
func (c Channels) Override(ctx context.Context, channel string, goOn bool) (api.ChannelOrdered, error) {
	return Post[api.ChannelOrdered](ctx, c.client, channelPath(channel, "/override"), api.OverrideBody{GoOn: goOn})
}

// Assign adds an agent to a channel.
func (c Channels) Assign(ctx context.Context, channel, agent string) (api.ChannelOrdered, error) {
	return Post[api.ChannelOrdered](ctx, c.client, channelPath(channel, "/members"), api.MemberBody{Agent: agent})
}

// Unassign removes an agent from a channel.
func (c Channels) Unassign(ctx context.Context, channel, agent string) (api.ChannelOrdered, error) {
	return call[api.ChannelOrdered](ctx, c.client, http.MethodDelete, channelPath(channel, "/members/"+url.PathEscape(agent)), nil, nil)
}

// Disable gives an agent no turns until Enable.
func (c Channels) Disable(ctx context.Context, agent string) (api.Commanded, error) {
	return Post[api.Commanded](ctx, c.client, agentPath(agent, "/disable"), api.EmptyBody{})
}

// Enable lets an agent get turns again.
func (c Channels) Enable(ctx context.Context, agent string) (api.Commanded, error) {
	return Post[api.Commanded](ctx, c.client, agentPath(agent, "/enable"), api.EmptyBody{})
}

func channelPath(name, rest string) string { return "/channels/" + url.PathEscape(name) + rest }

func agentPath(name, rest string) string { return "/agents/" + url.PathEscape(name) + rest }

// Crew has the requests about the crew and its documents.
type Crew struct{ client *Client }

// Show returns the crew: its members and their status. all includes expired placeholders.
func (c Crew) Show(ctx context.Context, all bool) (view.CrewView, error) {
	return Get[view.CrewView](ctx, c.client, "/crew", queryOf(struct {
		All bool `query:"all"`
	}{all}))
}

// Summon summons a crew for the first time. It returns when the placeholders are durable. The error
// is a *Refused if the state does not allow it.
func (c Crew) Summon(ctx context.Context) (api.CrewOrdered, error) {
	return Post[api.CrewOrdered](ctx, c.client, "/crew/summon", api.EmptyBody{})
}

// Wake wakes members by id or name; an empty list means all that are not awake. It returns when the
// order is durable; the lead reports later which members are alive.
func (c Crew) Wake(ctx context.Context, agents []string) (api.CrewOrdered, error) {
	var who api.WakeBody
	for _, agent := range agents {
		who.Agents = append(who.Agents, api.AgentName(agent))
	}
	return Post[api.CrewOrdered](ctx, c.client, "/crew/wake", who)
}

// Sleep ends the lead's session, which sends all members to sleep.
func (c Crew) Sleep(ctx context.Context) (api.CrewOrdered, error) {
	return Post[api.CrewOrdered](ctx, c.client, "/crew/sleep", api.EmptyBody{})
}

// Document returns one member's document, by id or name. For an unknown name the error is a *Problem
// with status 404 and the known names; if two members have the name, it is a *Refused.
func (c Crew) Document(ctx context.Context, agent string) (view.DocumentView, error) {
	return Get[view.DocumentView](ctx, c.client, crewPath(agent), nil)
}

// Import imports a document's file from another device. The error is a *Problem with status
// 422 if it cannot be read, and a *Refused if no seat is free.
func (c Crew) Import(ctx context.Context, data []byte) (view.DocumentView, error) {
	return call[view.DocumentView](ctx, c.client, http.MethodPost, "/crew/import", nil, append([]byte{}, data...))
}

// Transcript returns a part of what was said, oldest first; limit 0 means the server's default.
func (c Crew) Transcript(ctx context.Context, q crewctl.TranscriptQuery) (crewctl.TranscriptPage, error) {
	return Get[crewctl.TranscriptPage](ctx, c.client, "/crew/transcript", queryOf(q))
}

func crewPath(agent string) string { return "/crew/agents/" + url.PathEscape(agent) }

// Questions has the requests about agents' questions that wait for a person, and saved answers.
type Questions struct{ client *Client }

// Show returns one question, also an answered one. The error is a *Problem with status 404 if it
// is not known, or no longer.
func (c Questions) Show(ctx context.Context, id string) (view.QuestionView, error) {
	return Get[view.QuestionView](ctx, c.client, "/questions/"+url.PathEscape(id), nil)
}

// Answer answers a question; it returns when the answer is durable. The error is a *Refused
// if the question no longer waits, or does not accept such an answer.
func (c Questions) Answer(ctx context.Context, id string, answer view.QuestionAnswer) (api.Ordered, error) {
	return Post[api.Ordered](ctx, c.client, "/questions/"+url.PathEscape(id)+"/answer", api.AskedBody(answer))
}

// Saved returns the saved answers, oldest first.
func (c Questions) Saved(ctx context.Context) ([]view.SavedAnswerView, error) {
	all, err := Get[api.SavedAnswers](ctx, c.client, "/saved-answers", nil)
	return all.Saved, err
}

// Revoke revokes a saved answer.
func (c Questions) Revoke(ctx context.Context, id string) (api.Ordered, error) {
	return call[api.Ordered](ctx, c.client, http.MethodDelete, "/saved-answers/"+url.PathEscape(id), nil, nil)
}

// RetryAgent starts a rate-limited agent before its limit resets; for other agents it changes
// nothing. The error is a *Refused if the caller is an agent.
func (c *Client) RetryAgent(ctx context.Context, agent string) (api.Ordered, error) {
	return Post[api.Ordered](ctx, c, agentPath(agent, "/retry"), api.EmptyBody{})
}

// EndAgentSession ends an agent's session; a second call ends it at once. The error is a *Refused if
// the agent has no session that this may end.
func (c *Client) EndAgentSession(ctx context.Context, agent string) (api.Ordered, error) {
	return Post[api.Ordered](ctx, c, agentPath(agent, "/end"), api.EmptyBody{})
}

// OpenPort opens a port of a running session for a browser. The target is an agent, a session or a task.
func (c *Client) OpenPort(ctx context.Context, target string, port int) (view.OpenedPort, error) {
	return Post[view.OpenedPort](ctx, c, agentPath(target, "/port"), map[string]int{"port": port})
}

// Tell tells the agent of a running session something. The target is an agent, a session or a run.
func (c *Client) Tell(ctx context.Context, target, text string) (view.TellResult, error) {
	return Post[view.TellResult](ctx, c, agentPath(target, "/tell"), map[string]string{"text": text})
}

// Digest says what happened since a time; zero: since a person marked everything as seen.
func (c *Client) Digest(ctx context.Context, since time.Time) (view.Digest, error) {
	return Get[view.Digest](ctx, c, "/digest", queryOf(struct {
		Since time.Time `query:"since"`
	}{since}))
}

// Usage returns the usage by agent, day and run; archived includes archived runs.
func (c *Client) Usage(ctx context.Context, archived bool) (view.UsageTable, error) {
	return Get[view.UsageTable](ctx, c, "/usage", queryOf(struct {
		Archived bool `query:"archived"`
	}{archived}))
}

// Runs has the requests about runs of workflows.
type Runs struct{ client *Client }

// List returns all runs without their steps, newest first.
func (c Runs) List(ctx context.Context) ([]view.RunView, error) {
	all, err := Get[api.Runs](ctx, c.client, "/runs", nil)
	return all.Runs, err
}

// Show returns one run with its steps. For an unknown id the error is a *Problem with status 404 and
// the known ids.
func (c Runs) Show(ctx context.Context, id string) (view.RunView, error) {
	return Get[view.RunView](ctx, c.client, runPath(id, ""), nil)
}

// Start starts a run; it returns when the run is durable. The error is a *Refused, or a *Problem
// with status 422 and every fault of the workflow in its Errors.
func (c Runs) Start(ctx context.Context, flags view.RunFlags) (view.RunView, error) {
	return Post[view.RunView](ctx, c.client, "/runs", flags)
}

// Resume resumes a run that is over; flags that are left out keep their values.
func (c Runs) Resume(ctx context.Context, id string, flags view.RunFlags) (view.RunView, error) {
	return Post[view.RunView](ctx, c.client, runPath(id, "/resume"), flags)
}

// Cancel cancels a run, or only one step of it.
func (c Runs) Cancel(ctx context.Context, id, step, why string) (api.Ordered, error) {
	return Post[api.Ordered](ctx, c.client, runPath(id, "/cancel"), api.CancelBody{Step: step, Note: why})
}

// Pause pauses a run: no further step begins.
func (c Runs) Pause(ctx context.Context, id, why string) (api.Ordered, error) {
	return Post[api.Ordered](ctx, c.client, runPath(id, "/pause"), api.NoteBody{Note: why})
}

// Release continues a paused run.
func (c Runs) Release(ctx context.Context, id, why string) (api.Ordered, error) {
	return Post[api.Ordered](ctx, c.client, runPath(id, "/release"), api.NoteBody{Note: why})
}

// Answer answers a step that waits for a person. Input is JSON. Up to 512 KiB always fit; with its
// quotes escaped it must fit into a body of 1 MiB.
func (c Runs) Answer(ctx context.Context, id, step string, answer view.StepAnswer) (api.Ordered, error) {
	verb := "/approve"
	if answer.Rejected {
		verb = "/reject"
	}
	return Post[api.Ordered](ctx, c.client, runPath(id, "/steps/"+url.PathEscape(step)+verb),
		api.AnswerBody{Note: answer.Note, Input: answer.Input, Shown: answer.Shown, Tree: answer.Tree, Governing: answer.Governing})
}

// Inbox returns everything that needs a person, the most urgent first.
func (c *Client) Inbox(ctx context.Context) ([]view.InboxItem, error) {
	all, err := Get[api.Inbox](ctx, c, "/inbox", nil)
	return all.Items, err
}

// Prune archives old runs; with dry it only reports which.
func (c Runs) Prune(ctx context.Context, keep int, olderThan time.Duration, all, dry bool) ([]runs.PrunedRun, error) {
	older := olderThan.Milliseconds()
	done, err := Post[api.Pruned](ctx, c.client, "/prune", api.PruneBody{Keep: &keep, OlderThanMS: &older, All: all, DryRun: dry})
	return done.Runs, err
}

func runPath(id, rest string) string { return "/runs/" + url.PathEscape(id) + rest }

// Comments returns a person's comments on a task, of all rounds.
func (c Runs) Comments(ctx context.Context, id string) ([]view.TaskComment, error) {
	all, err := Get[view.TaskComments](ctx, c.client, runPath(id, "/comments"), nil)
	return all.Comments, err
}

// Comment adds a comment, which the next request sends, and returns all of them.
func (c Runs) Comment(ctx context.Context, id string, one api.CommentBody) ([]view.TaskComment, error) {
	all, err := Post[view.TaskComments](ctx, c.client, runPath(id, "/comments"), one)
	return all.Comments, err
}

// ChangeComment changes a comment, and returns all of them.
func (c Runs) ChangeComment(ctx context.Context, id string, comment int, body api.CommentTextBody) ([]view.TaskComment, error) {
	all, err := Post[view.TaskComments](ctx, c.client, runPath(id, "/comments/"+strconv.Itoa(comment)), body)
	return all.Comments, err
}

// Request sends the comments and a text back to the task's agent.
func (c Runs) Request(ctx context.Context, id string, what api.RequestBody) (api.Ordered, error) {
	return Post[api.Ordered](ctx, c.client, runPath(id, "/request"), what)
}

// Merge approves a task, or lands it again after landing failed. It returns when that is recorded.
func (c Runs) Merge(ctx context.Context, id string, what api.MergeBody) (api.Ordered, error) {
	return Post[api.Ordered](ctx, c.client, runPath(id, "/merge"), what)
}

// Sync fetches the remote for a task.
func (c Runs) Sync(ctx context.Context, id string) (view.TaskSync, error) {
	return Post[view.TaskSync](ctx, c.client, runPath(id, "/sync"), struct{}{})
}

// Undo takes back what a task has landed.
func (c Runs) Undo(ctx context.Context, id string) (view.TaskUndone, error) {
	return Post[view.TaskUndone](ctx, c.client, runPath(id, "/undo"), struct{}{})
}

// Push pushes the branch of a task to a remote.
func (c Runs) Push(ctx context.Context, id string, to api.PushBody) (view.TaskPushed, error) {
	return Post[view.TaskPushed](ctx, c.client, runPath(id, "/push"), to)
}

// Checkout makes a worktree in which a person works on a task, or takes what was committed there and removes it.
func (c Runs) Checkout(ctx context.Context, id string, what api.CheckoutBody) (view.TaskCheckout, error) {
	return Post[view.TaskCheckout](ctx, c.client, runPath(id, "/checkout"), what)
}

// Drop ends a task and removes its folder.
func (c Runs) Drop(ctx context.Context, id string) (api.Dropped, error) {
	return Post[api.Dropped](ctx, c.client, runPath(id, "/drop"), struct{}{})
}

// Logins has the requests about the browsers that are signed in to Mission Control.
type Logins struct{ client *Client }

// NewCode issues a code that signs one browser in. The error is a *Refused if the caller is an agent.
func (c Logins) NewCode(ctx context.Context) (api.LoginCode, error) {
	return Post[api.LoginCode](ctx, c.client, "/login-codes", api.EmptyBody{})
}

// List returns the browsers that are signed in, the oldest first.
func (c Logins) List(ctx context.Context) ([]api.Login, error) {
	all, err := Get[api.Logins](ctx, c.client, "/logins", nil)
	return all.Logins, err
}

// Revoke signs a browser out. The error is a *Problem with status 404 if no login has the id.
func (c Logins) Revoke(ctx context.Context, id string) (api.LoginRevoked, error) {
	return call[api.LoginRevoked](ctx, c.client, http.MethodDelete, "/logins/"+url.PathEscape(id), nil, nil)
}

// Hosts returns the hosts of the team.
func (c *Client) Hosts(ctx context.Context) (view.Hosts, error) {
	return Get[view.Hosts](ctx, c, "/hosts", nil)
}

// Invite makes an invitation for one host. The error is a *Refused if the team has no cluster, or if the caller is an
// agent.
func (c *Client) Invite(ctx context.Context, labels []api.HostLabel, engine bool) (api.Invitation, error) {
	return Post[api.Invitation](ctx, c, "/hosts/invitations", api.InviteBody{Labels: labels, Engine: engine})
}

// DrainHost lets no new session begin on a host. The error is a *Refused if its state does not allow that, or if the
// caller is an agent.
func (c *Client) DrainHost(ctx context.Context, name string) (api.Ordered, error) {
	return Post[api.Ordered](ctx, c, "/hosts/"+url.PathEscape(name)+"/drain", api.EmptyBody{})
}

// RemoveHost takes a host out of the team. Its errors are those of DrainHost.
func (c *Client) RemoveHost(ctx context.Context, name string) (api.Ordered, error) {
	return Post[api.Ordered](ctx, c, "/hosts/"+url.PathEscape(name)+"/remove", api.EmptyBody{})
}

// Lead lets another engine host lead. The error is a *Refused if it cannot, or if the caller is an agent.
func (c *Client) Lead(ctx context.Context, name string) (api.Leads, error) {
	return Post[api.Leads](ctx, c, "/hosts/"+url.PathEscape(name)+"/lead", api.EmptyBody{})
}

// LeaveCluster takes the journal back to the leader's machine. Its errors are those of DrainHost.
func (c *Client) LeaveCluster(ctx context.Context) (api.Ordered, error) {
	return Post[api.Ordered](ctx, c, "/cluster/leave", api.EmptyBody{})
}

// NoticeTargets returns the targets of notices in the order of fairlead.yaml.
func (c *Client) NoticeTargets(ctx context.Context) ([]view.NoticeTarget, error) {
	all, err := Get[api.NoticeTargets](ctx, c, "/notify", nil)
	return all.Targets, err
}

// TestNotice sends a test notice to one target, or to all without a name. The error is a *Refused if there is no target
// or the caller is an agent.
func (c *Client) TestNotice(ctx context.Context, target string) ([]view.NoticeTest, error) {
	body := map[string]string{}
	if target != "" {
		body["target"] = target
	}
	done, err := Post[api.NoticeTests](ctx, c, "/notify/test", body)
	return done.Tests, err
}

// Search finds what was said, done, asked and changed.
func (c *Client) Search(ctx context.Context, q api.SearchQuery) (view.SearchPage, error) {
	return Get[view.SearchPage](ctx, c, "/search", queryOf(q))
}
