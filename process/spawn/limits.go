package spawn

// Limits bound what the processes of one session may use of their machine. Zero means no limit, and for Output the shim's own. At
// a limit the shim ends the session, and its exit names the limit.
type Limits struct {
	Memory    int64 `json:"memory,omitempty"`    // bytes, what lies in memory included
	Processes int   `json:"processes,omitempty"` // with their threads
	Disk      int64 `json:"disk,omitempty"`      // bytes by which the folders that it can write may grow
	Output    int64 `json:"output,omitempty"`    // bytes that are kept

	EndAtOutput bool `json:"end_at_output,omitempty"` // else the program waits at Output
}
