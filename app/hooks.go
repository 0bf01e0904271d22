package app

// registerAll adds the hooks of every controller in the order in which they act.
func (e *Supervisor) registerAll() {
	e.Register(e.Cluster.HostHooks())
	e.Register(e.ChannelHooks())
	e.Register(e.CrewHooks())
	e.Register(e.DispatchHooks())
	e.Register(e.QuestionHooks())
	e.Register(e.AgentHooks())
	e.Register(e.RunHooks())
}
