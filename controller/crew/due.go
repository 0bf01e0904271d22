package crew

// documentsSettled reports whether the agents' document files match the journal. A stop waits for
// it, so that a copy of the files is up to date.
func (e *Controller) documentsSettled() bool {
	return e.opts.Documents == nil || e.CrewState.filed.Load() == e.CrewState.changed.Load()
}
