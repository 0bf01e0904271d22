package exchange_test

import (
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/files/crewdocs"
	"github.com/fairlead-dev/fairlead/files/exchange"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// kind is one content that the exchange holds for.
type kind struct {
	content exchange.Content[any]
	name    string                   // of the file, for Read and Write
	base    string                   // its name in the folder
	says    func(note string) string // content with this note
	note    func(state any) string

	fresh, swap, corrupt string // beginnings of names beside the file
}

type (
	watchedFiles = exchange.Files[any]
	seenFile     = exchange.Seen[any]
	changedFile  = exchange.Changed[any]
	watchedIn    = exchange.Folder[any]
)

// untyped hides the type of a content's value.
func untyped[T any](c exchange.Content[T]) exchange.Content[any] {
	return exchange.Content[any]{
		Name: c.Name, Ending: c.Ending, Most: c.Most, Copies: c.Copies,
		Parse: func(b []byte) (any, error) { return c.Parse(b) },
	}
}

func kindOf[T any](c exchange.Content[T], name, base string, says func(string) string, note func(T) string) *kind {
	k := &kind{content: untyped(c), name: name, base: base, says: says, note: func(state any) string {
		said, _ := state.(T)
		return note(said)
	}}
	k.fresh, k.swap, k.corrupt = exchange.Marks(base)
	return k
}

var agentState = kindOf(agentstate.Content, "coder", agentstate.FileName,
	func(note string) string {
		return string(agentstate.State{
			DesiredState: agentstate.RunOnce, CurrentState: agentstate.Pause, SetBy: agentstate.SetByHuman,
			Note: note,
		}.Render())
	},
	func(s agentstate.State) string { return s.Note })

var document = kindOf(crewdocs.Content, "mira", "mira.json",
	func(note string) string {
		return string(crewdocs.WriteDocument(&crew.Document{
			Status: crew.Alive,
			Identity: crew.Identity{
				Name: "Mira", Color: "#123456", ColorName: "Blue", Gender: "woman", Seat: 5,
				Face: crew.Face{Eyes: "round", Mouth: "wide"}, Soul: note,
			},
			CreatedAt: time.Date(2026, 2, 16, 0, 0, 0, 0, time.UTC),
		}))
	},
	func(f crewdocs.File) string { return f.Document.Soul })

var runState = kindOf(
	// as one that is watched
	exchange.Content[runstate.RunState]{Name: runstate.RunStateName, Most: file.BytesMax, Copies: true, Parse: runstate.ParseRunState},
	"f8c1a491", runstate.RunStateName,
	func(note string) string {
		return string(runstate.RunState{
			RunID: "f8c1a491", WorkflowName: note, CreatedAt: "2025-01-15T14:30:00.123456Z",
			UpdatedAt: "2025-01-15T14:30:00.123456Z",
		}.Render())
	},
	func(s runstate.RunState) string { return s.WorkflowName })

// each runs a test for all contents: a file in a folder of its own, and a file of many in one folder.
func each(t *testing.T, test func(t *testing.T, k *kind)) {
	t.Helper()
	for _, k := range []*kind{agentState, document, runState} {
		t.Run(k.content.Name, func(t *testing.T) { test(t, k) })
	}
}

// alone skips a test of a file that has its own folder.
func (k *kind) alone(t *testing.T) {
	t.Helper()
	if k.content.Ending != "" {
		t.Skip("there are many in one folder")
	}
}

// copies skips a test of malformed content that is copied.
func (k *kind) copies(t *testing.T) {
	t.Helper()
	if !k.content.Copies {
		t.Skip("the caller puts it aside")
	}
}
