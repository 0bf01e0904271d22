package seam

// Confinement is what the host of a session needs to make its sandbox. The host reads links, folders and .git itself:
// those of another machine say nothing.
type Confinement struct {
	Agent    string   `json:"agent"`
	Driver   string   `json:"driver"`
	Command  []string `json:"command,omitempty"`
	CanWrite []string `json:"can_write"`        // nil: everything in the workspace; empty: nothing
	Write    []string `json:"write,omitempty"`  // sandbox.write of fairlead.yaml
	Writes   []string `json:"writes,omitempty"` // folders and files outside of the workspace that the session needs
	ReadOnly bool     `json:"read_only,omitempty"`
	Auto     bool     `json:"auto,omitempty"` // start without a sandbox where there is none
	Sockets  bool     `json:"sockets,omitempty"`
	Commits  bool     `json:"commits,omitempty"` // git may commit, also where .git is no part of the folders that may be written
}
