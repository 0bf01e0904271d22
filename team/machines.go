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

// Machine is one state machine as people read it. Everything in it comes from the table
// that decides.
type Machine struct {
	Name    string        `json:"name"`    // control, session, presence, lead, dispatch, workflow, run, turn, message
	Promise string        `json:"promise"` // what it keeps, in one sentence
	Rows    []machine.Row `json:"rows"`    // by id
	Mermaid string        `json:"mermaid"` // a state diagram
	Matrix  string        `json:"matrix"`  // every pair of an event and a state
}

// Machines lists the machines of a team, in the order in which a reader should meet them.
func Machines() []Machine {
	return []Machine{
		{
			Name: "control", Promise: "Nothing is started that the newest wish does not ask for.",
			Rows: control.Table.Rows(), Mermaid: control.Table.Mermaid(), Matrix: control.Table.Matrix(),
		},
		{
			Name: "session", Promise: "An agent has at most one session, and it is in the journal before its process exists.",
			Rows: session.Table.Rows(), Mermaid: session.Table.Mermaid(), Matrix: session.Table.Matrix(),
		},
		{
			Name: "presence", Promise: "Nobody is alive but by a report of the lead session that is open now, and nobody is ever deleted.",
			Rows: crew.Table.Rows(), Mermaid: crew.Table.Mermaid(), Matrix: crew.Table.Matrix(),
		},
		{
			Name: "lead", Promise: "A summon or a wake ends with a report, with silence, or with the lead.",
			Rows: crew.LeadTable.Rows(), Mermaid: crew.LeadTable.Mermaid(), Matrix: crew.LeadTable.Matrix(),
		},
		{
			Name: "workflow", Promise: "No step begins before what it needs is done, and what is done is not done again unless a gate or a person sends the run back.",
			Rows: workflow.Table.Rows(), Mermaid: workflow.Table.Mermaid(), Matrix: workflow.Table.Matrix(),
		},
		{
			Name: "run", Promise: "A run is cancelled, paused or resumed by somebody with a name; how far it is, is read off its steps.",
			Rows: workflow.RunTable.Rows(), Mermaid: workflow.RunTable.Mermaid(), Matrix: workflow.RunTable.Matrix(),
		},
		{
			Name: "dispatch", Promise: "At most one conversation of a session is open, every input has a number of its own, and numbers have no gaps.",
			Rows: dispatch.Table.Rows(), Mermaid: dispatch.Table.Mermaid(), Matrix: dispatch.Table.Matrix(),
		},
		{
			Name: "turn", Promise: "At most one agent of a channel is ACTIVE or WAITING.",
			Rows: channel.Table.Rows(), Mermaid: channel.Table.Mermaid(), Matrix: channel.Table.Matrix(),
		},
		{
			Name: "message", Promise: "What a person says in a channel is handed to an agent, and answered or said to have lapsed.",
			Rows: channel.MessageTable.Rows(), Mermaid: channel.MessageTable.Mermaid(), Matrix: channel.MessageTable.Matrix(),
		},
		{
			Name: "question", Promise: "Every question ends with an answer that was told, or says who did not want it any more.",
			Rows: question.Table.Rows(), Mermaid: question.Table.Mermaid(), Matrix: question.Table.Matrix(),
		},
	}
}

// MachinesPage is doc/machines.md: every table with its diagram.
func MachinesPage() string {
	var doc strings.Builder
	doc.WriteString("<!-- Code generated from the tables by UPDATE=1 go test ./team; DO NOT EDIT. -->\n\n" +
		"# The machines\n\n" +
		"What is not a row here does not happen: an event that a state has no row for is refused. " +
		"The ids are the specification's. F rows are the rules for a foreign loop, S rows the life of a session, L rows what happens to the lead of the team, Q rows what becomes of a question, R rows what an agent does whose provider takes no more for a while, and M rows the life of a message, which " +
		"the specification gives as text. `fairlead docs machines` prints the same.\n")
	for _, m := range Machines() {
		fmt.Fprintf(&doc, "\n## %s\n\n%s\n\n```mermaid\n%s```\n\n", m.Name, m.Promise, m.Mermaid)
		doc.WriteString("| row | from | event | to | does | why |\n|---|---|---|---|---|---|\n")
		for _, row := range m.Rows {
			fmt.Fprintf(&doc, "| %s | %s | %s | %s | %s | %s |\n", row.ID, row.From, row.On, row.To, strings.Join(row.Do, ", "), row.Why)
		}
	}
	return doc.String()
}
