package session

import "time"

// Limit names a limit of fairlead.yaml that ended a session's processes.
type Limit string

// The limits of a session's processes.
const (
	LimitMemory    Limit = "memory"
	LimitProcesses Limit = "processes"
	LimitDisk      Limit = "disk"
	LimitOutput    Limit = "output"
	LimitFreeDisk  Limit = "free_disk" // no key: little of the disk was free, and the session filled it fastest
)

// Use is what the processes of a session use of their machine, or have used at its end. Zero is unknown.
type Use struct {
	MemoryBytes int64         `json:"memory_bytes,omitempty"` // at its end: the most that was seen
	Processes   int           `json:"processes,omitempty"`    // with their threads; at its end: the most that was seen
	Processor   time.Duration `json:"processor_ns,omitempty"`
	DiskBytes   int64         `json:"disk_bytes,omitempty"` // by how much the folders that it can write have grown
}
