package crew

// documentsSettled reports whether the agents' document files match the journal. A stop waits for
// it, so that a copy of the files is up to date.
func (c *CrewController) documentsSettled() bool {
	return c.opts.Documents == nil || c.CrewState.filed.Load() == c.CrewState.changed.Load()
}
