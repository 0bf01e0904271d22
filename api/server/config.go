package server

import (
	"context"
	"net/http"
	"time"

	"github.com/fairlead-dev/fairlead/api"
)

// AgentEditor changes the agents of fairlead.yaml. Its errors are *api.Problem.
type AgentEditor interface {
	List(ctx context.Context) (*api.ConfigAgents, error)
	Entry(ctx context.Context, name string) (*api.ConfigEntry, error)
	Preview(ctx context.Context, c *api.AgentChange) (*api.AgentPreview, error)
	Write(ctx context.Context, c *api.AgentChange) (*api.AgentWritten, error)
	Test(ctx context.Context, c *api.AgentChange) (*api.AgentTest, error)
}

type changeIn struct{ Body api.AgentChange }

func configRoutes() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{
			"list-config-agents", get, "/config/agents", "List the agents of fairlead.yaml",
			"With the agent programs that this build can drive, and where they are installed. For people only (X10), as all routes below `/config`.", edits(func(ctx context.Context, e AgentEditor, _ *nothing) (*api.ConfigAgents, error) { return e.List(ctx) }),
		},
		{
			"read-config-agent", get, "/config/agents/{name}", "Read an agent's entry of fairlead.yaml",
			"As a form. Of variables there are only the names.",
			edits(func(ctx context.Context, e AgentEditor, in *AgentPath) (*api.ConfigEntry, error) {
				return e.Entry(ctx, in.Name)
			}),
		},
		{
			"preview-config-change", post, "/config/preview", "Show what a change of an agent makes of fairlead.yaml",
			"Writes nothing. Status 422 names every fault by its key.",
			edits(func(ctx context.Context, e AgentEditor, in *changeIn) (*api.AgentPreview, error) {
				return e.Preview(ctx, &in.Body)
			}),
		},
		{
			"write-config-change", post, "/config/write", "Write a change of an agent to fairlead.yaml",
			"`sum` is that of the preview; status 412 if the file changed since. The daemon then loads the file, as for `/reload`.",
			edits(func(ctx context.Context, e AgentEditor, in *changeIn) (*api.AgentWritten, error) {
				return e.Write(ctx, &in.Body)
			}),
		},
		{
			"test-config-change", post, "/config/test", "Look at the program of an agent",
			"As the change would make it. No conversation is started, and nothing is written.",
			edits(func(ctx context.Context, e AgentEditor, in *changeIn) (*api.AgentTest, error) {
				return e.Test(ctx, &in.Body)
			}),
		},
	}
}

// edits is a route about fairlead.yaml. No agent may use one.
func edits[In, Out any](do func(context.Context, AgentEditor, *In) (*Out, error)) adder {
	return answerWithin(2*time.Minute, func(ctx context.Context, s *Server, in *In) (*Out, error) {
		if err := identity(ctx).MayConfigure("configure"); err != nil {
			return nil, err
		}
		if s.opts.Editor == nil {
			return nil, api.NewProblem(http.StatusNotImplemented, "this daemon cannot change fairlead.yaml")
		}
		return do(ctx, s.opts.Editor, in)
	})
}
