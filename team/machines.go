package team

import (
	"fmt"
	"strings"

	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/machine/crew"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/machine/question"
	"github.com/fairlead-dev/fairlead/machine/session"
	"github.com/fairlead-dev/fairlead/machine/workflow"
)

// Machine is one state machine as a page for people, generated from its table.
type Machine struct {
	Name    string        `json:"name"`    // control, session, presence, lead, dispatch, workflow, run, turn, message
	Promise string        `json:"promise"` // one sentence
	Rows    []machine.Row `json:"rows"`    // by id
	Mermaid string        `json:"mermaid"` // a state diagram
	Matrix  string        `json:"matrix"`  // every pair of an event and a state
}

// Machines lists the machines of a team, in reading order.
func Machines() []Machine {
	return []Machine{
		{
			Name: "control", Promise: "No session starts that the newest desired state does not ask for.",
			Rows: control.Table.Rows(), Mermaid: control.Table.Mermaid(), Matrix: control.Table.Matrix(),
		},
		{
			Name: "session", Promise: "An agent has at most one session, and it is in the journal before its process exists.",
			Rows: session.Table.Rows(), Mermaid: session.Table.Mermaid(), Matrix: session.Table.Matrix(),
		},
		{
			Name: "presence", Promise: "An agent is alive only by a report of the lead's open session, and no document is ever deleted.",
			Rows: crew.Table.Rows(), Mermaid: crew.Table.Mermaid(), Matrix: crew.Table.Matrix(),
		},
		{
			Name: "lead", Promise: "A summon or a wake ends with a report, with a timeout, or with the lead's session.",
			Rows: crew.LeadTable.Rows(), Mermaid: crew.LeadTable.Mermaid(), Matrix: crew.LeadTable.Matrix(),
		},
		{
			Name: "workflow", Promise: "No step starts before the steps that it needs are done, and no finished step is repeated unless a gate or a person sends the run back.",
			Rows: workflow.Table.Rows(), Mermaid: workflow.Table.Mermaid(), Matrix: workflow.Table.Matrix(),
		},
		{
			Name: "run", Promise: "Every cancel, pause and resume of a run names its actor; the state of a run follows from its steps.",
			Rows: workflow.RunTable.Rows(), Mermaid: workflow.RunTable.Mermaid(), Matrix: workflow.RunTable.Matrix(),
		},
		{
			Name: "dispatch", Promise: "At most one conversation of a dispatch is open, every input has its own number, and the numbers have no gaps.",
			Rows: dispatch.Table.Rows(), Mermaid: dispatch.Table.Mermaid(), Matrix: dispatch.Table.Matrix(),
		},
		{
			Name: "turn", Promise: "At most one agent of a channel is ACTIVE or WAITING.",
			Rows: channel.Table.Rows(), Mermaid: channel.Table.Mermaid(), Matrix: channel.Table.Matrix(),
		},
		{
			Name: "message", Promise: "A person's message is delivered to an agent, and ends as answered or lapsed.",
			Rows: channel.MessageTable.Rows(), Mermaid: channel.MessageTable.Mermaid(), Matrix: channel.MessageTable.Matrix(),
		},
		{
			Name: "question", Promise: "Every question ends as told or withdrawn, and records which.",
			Rows: question.Table.Rows(), Mermaid: question.Table.Mermaid(), Matrix: question.Table.Matrix(),
		},
	}
}

// MachinesPage is doc/machines.md: every table with its diagram.
func MachinesPage() string {
	var doc strings.Builder
	doc.WriteString("<!-- Code generated from the tables by UPDATE=1 go test ./team; DO NOT EDIT. -->\n\n" +
		"# The machines\n\n" +
		"An event is refused if the state has no row for it. " +
		"The ids are those of the specification. Rows that it gives as text have their own letters: F for a foreign loop, S for a session, L for the lead of the crew, Q for a question, R for a rate limit and M for a message. " +
		"`fairlead docs machines` prints this page.\n")
	for _, m := range Machines() {
		fmt.Fprintf(&doc, "\n## %s\n\n%s\n\n```mermaid\n%s```\n\n", m.Name, m.Promise, m.Mermaid)
		doc.WriteString("| row | from | event | to | does | why |\n|---|---|---|---|---|---|\n")
		for _, row := range m.Rows {
			fmt.Fprintf(&doc, "| %s | %s | %s | %s | %s | %s |\n", row.ID, row.From, row.On, row.To, strings.Join(row.Do, ", "), row.Why)
		}
	}
	return doc.String()
}
