package crew

// documentsSettled says whether the files of the agents' documents were brought up to the journal: who
// copies them after a stop copies what was true.
func (e *Controller) documentsSettled() bool {
	return e.opts.Documents == nil || e.CrewState.filed.Load() == e.CrewState.changed.Load()
}
