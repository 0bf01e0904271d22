package team

import (
	"fmt"
	"strings"

	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// PurposeKind is the kind of work that a session is opened for.
type PurposeKind string

const (
	PurposeControl  PurposeKind = "control"  // the agent's own work, as its desired state says
	PurposeChannels PurposeKind = "channels" // the agent's part in its channels
	PurposeLead     PurposeKind = "lead"     // the lead of the crew
	PurposeStep     PurposeKind = "step"     // one step of a run
	PurposeDispatch PurposeKind = "dispatch" // one work of a dispatch folder
)

// Purpose says what a session, a claim or a conversation is for. The zero value is no purpose.
// Values are comparable.
//
// In JSON a purpose is one text: control, channels, lead, run/RUN/STEP or dispatch/FOLDER/WORK.
// MarshalText and UnmarshalText are the only code that writes and reads that text.
type Purpose struct {
	Kind   PurposeKind
	Run    string // of a step
	Step   string // of a step
	Folder string // of a dispatch: the folder's name
	Work   string // of a dispatch: the key of the work, see dispatch.Work.Key
}

// The purposes that need no name of a run or a folder.
var (
	ForControl  = Purpose{Kind: PurposeControl}
	ForChannels = Purpose{Kind: PurposeChannels}
	ForLead     = Purpose{Kind: PurposeLead}
)

// ForStep is the purpose of a session that does a step of a run.
func ForStep(run string, step workflow.StepID) Purpose {
	return Purpose{Kind: PurposeStep, Run: run, Step: string(step)}
}

// ForDispatch is the purpose of a session that does a work of a dispatch folder.
func ForDispatch(folder, key string) Purpose {
	return Purpose{Kind: PurposeDispatch, Folder: folder, Work: key}
}

// StepOf gives the run and the step that a purpose names; ok is false for any other purpose.
func StepOf(p Purpose) (run, step string, ok bool) { return p.Run, p.Step, p.Kind == PurposeStep }

// StepNamed gives the step that a purpose names, as String writes it; empty: it names none.
func StepNamed(text string) (run, step string) {
	var p Purpose
	if p.UnmarshalText([]byte(text)) == nil {
		run, step, _ = StepOf(p)
	}
	return run, step
}

// DispatchActionOf gives the folder and the work that a purpose names; ok is false for any other purpose.
func DispatchActionOf(p Purpose) (folder string, work dispatch.Action, ok bool) {
	if p.Kind != PurposeDispatch {
		return "", dispatch.Action{}, false
	}
	work, ok = dispatch.ActionOf(p.Work)
	return p.Folder, work, ok
}

// String returns the purpose as the journal stores it.
func (p Purpose) String() string {
	switch p.Kind {
	case PurposeStep:
		return runPrefix + p.Run + "/" + p.Step
	case PurposeDispatch:
		return folderPrefix + p.Folder + "/" + p.Work
	default:
		return string(p.Kind)
	}
}

// Compare orders purposes by their text.
func (p Purpose) Compare(q Purpose) int { return strings.Compare(p.String(), q.String()) }

// MarshalText writes the purpose as it is written in the journal.
func (p Purpose) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a purpose. It fails on a text that no version of Fairlead has written.
func (p *Purpose) UnmarshalText(text []byte) error {
	*p = Purpose{}
	switch kind, rest, named := strings.Cut(string(text), "/"); {
	case !named && kind == "":
	case !named && (kind == string(PurposeControl) || kind == string(PurposeChannels) || kind == string(PurposeLead)):
		p.Kind = PurposeKind(kind)
	case named && kind+"/" == runPrefix:
		p.Kind = PurposeStep
		p.Run, p.Step, _ = strings.Cut(rest, "/")
	case named && kind+"/" == folderPrefix:
		p.Kind = PurposeDispatch
		p.Folder, p.Work, _ = strings.Cut(rest, "/")
	default:
		return fmt.Errorf("unknown purpose %q of a session", text)
	}
	return nil
}
