package view

import (
	"fmt"
	"strings"

	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/notice"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/session"
	machine "github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// Machine is the documentation of one state machine, generated from its table.
type Machine struct {
	Name    string        `json:"name"`    // such as control or task
	Promise string        `json:"promise"` // one sentence
	Rows    []machine.Row `json:"rows"`    // by id
	Mermaid string        `json:"mermaid"` // a state diagram
	Matrix  string        `json:"matrix"`  // every pair of an event and a state
}

func described(name, promise string, table interface {
	Rows() []machine.Row
	Mermaid() string
	Matrix() string
},
) Machine {
	return Machine{Name: name, Promise: promise, Rows: table.Rows(), Mermaid: table.Mermaid(), Matrix: table.Matrix()}
}

// Machines lists the machines of a team, in reading order.
func Machines() []Machine {
	return []Machine{
		described("control", "No session starts that the newest desired state does not ask for.", control.Table),
		described("session", "A slot has at most one session, and it is in the journal before its process exists.", session.Table),
		described("crew", "An agent is alive only by a report of the lead's open session, and no document is ever deleted.", crew.Table),
		described("lead", "A summon or a wake ends with a report, with a timeout, or with the lead's session.", crew.LeadTable),
		described("workflow",
			"No step starts before the steps that it needs are done, and no finished step is repeated unless a gate or a person sends the run back.", workflow.Table),
		described("run", "Every cancel, pause and resume of a run names its actor; the state of a run follows from its steps.",
			workflow.RunTable),
		described("task", "Only what a person was shown lands, and it lands once.", task.Table),
		described("dispatch",
			"At most one conversation of a dispatch is open, every input has its own number, and the numbers have no gaps.",
			dispatch.Table),
		described("turn", "At most one agent of a channel is ACTIVE or WAITING.", channel.Table),
		described("message", "A person's message is delivered to an agent, and ends as answered or lapsed.", channel.MessageTable),
		described("question", "Every question ends as told or withdrawn, and records which.", question.Table),
		described("notice", "Each matter is sent to a target of notices once, and a cause of failure is journaled once.", notice.Table),
	}
}

// hostMachine is the table of the hosts of a team, which only a cluster has.
func hostMachine() Machine {
	return described("host", "A session has at most one process, on all hosts together.", host.Table)
}

// MachinesPage returns doc/machines.md: every table with its diagram.
func MachinesPage() string {
	var doc strings.Builder
	doc.WriteString("<!-- Code generated from the tables by UPDATE=1 go test ./read/view; DO NOT EDIT. -->\n\n" +
		"# The machines\n\n" +
		"An event is refused if the state has no row for it. " +
		"The ids are those of the specification. Rows that it gives as text have their own letters: F for a foreign loop, S for a session, L for the lead of the crew, Q for a question, R for a rate limit, K for a task, M for a message, G for a target of notices and H for a host. " +
		"`fairlead docs machines` prints this page.\n")
	for _, m := range append(Machines(), hostMachine()) {
		fmt.Fprintf(&doc, "\n## %s\n\n%s\n\n```mermaid\n%s```\n\n", m.Name, m.Promise, m.Mermaid)
		doc.WriteString("| row | from | event | to | does | why |\n|---|---|---|---|---|---|\n")
		for _, row := range m.Rows {
			fmt.Fprintf(&doc, "| %s | %s | %s | %s | %s | %s |\n", row.ID, row.From, row.On, row.To, strings.Join(row.Do, ", "), row.Why)
		}
	}
	return doc.String()
}
