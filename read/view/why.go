package view

import (
	"time"
)

// WhyView is the evidence for an agent's status.
type WhyView struct {
	Agent    AgentView     `json:"agent"`
	Verdict  string        `json:"verdict" doc:"One sentence"`
	Evidence []Evidence    `json:"evidence"`
	Sessions []PastSession `json:"sessions" doc:"Newest first, including the open one; at most 50"`
	Layers   []Layer       `json:"layers" doc:"What restricts it in ordinary sessions, according to fairlead.yaml: rules, bounds, sandbox; git, if a commit fails in its workspace"`
}

// Evidence is one observation: what was seen, by which source, how long ago, and whether it supports
// or contradicts the status.
type Evidence struct {
	What   string    `json:"what" doc:"In words"`
	Source string    `json:"source" doc:"Where it was observed: journal, file, shim, process table, driver, permissions, wall, limits"`
	At     time.Time `json:"at" doc:"When it was seen"`
	AgeMS  int64     `json:"age_ms" doc:"Age of the evidence"`
	Holds  bool      `json:"holds" doc:"true: it supports the status; false: it contradicts it"`
}

// PastSession is one session of an agent.
type PastSession struct {
	ID        string     `json:"id"`
	Kind      string     `json:"kind"`
	OpenedAt  time.Time  `json:"opened_at"`
	StartedAt *time.Time `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"`
	Outcome   string     `json:"outcome" doc:"ok, failed, cannot_start, lost, withdrawn, cancelled, rate_limited, conversation_lost; empty while the session is open"`
	Why       string     `json:"why" doc:"In words"`
	Bytes     int64      `json:"bytes" doc:"Bytes of output"`
	Limit     string     `json:"limit,omitempty" doc:"The limit of its processes for which it was ended" enum:"memory,processes,disk,output,free_disk"`
	Use       *UseView   `json:"use,omitempty" doc:"What its processes have used of their machine; left out if that is not known"`
}

// OrNobody returns the actor, or "nobody" if it is empty.
func OrNobody(by string) string {
	if by == "" {
		return "nobody"
	}
	return by
}

// Because formats a note as the end of a sentence, or returns "".
func Because(note string) string {
	if note == "" {
		return ""
	}
	return " (" + note + ")"
}
