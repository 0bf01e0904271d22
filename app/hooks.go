package app

// registerAll adds the hooks of every controller in the order in which they act.
func (e *App) registerAll() {
	e.Loop.Register(e.Cluster.HostHooks())
	e.Loop.Register(e.Channels.ChannelHooks())
	e.Loop.Register(e.Crew.CrewHooks())
	e.Loop.Register(e.Dispatch.DispatchHooks())
	e.Loop.Register(e.Questions.QuestionHooks())
	e.Loop.Register(e.Agents.AgentHooks())
	e.Loop.Register(e.Runs.RunHooks())
	e.Loop.Register(e.Starts.StartHooks())
	e.Loop.Register(e.Network.Hooks())
}
