package host

import (
	"cmp"
	"slices"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Lack is something that a host does not have at present. With room on its disk missing it takes no new session; with a
// program or a variable missing, none that uses it.
type Lack struct {
	What LackOf `json:"what"`
	Name string `json:"name,omitempty"` // of the program or the variable
}

// LackOf is the kind of a Lack.
type LackOf string

const (
	Disk     LackOf = "disk"
	Program  LackOf = "program"
	Variable LackOf = "variable"
)

// String says it of "it".
func (l Lack) String() string {
	switch l.What {
	case Disk:
		return "its disk is almost full"
	case Program:
		return "it has no program " + l.Name + " in its PATH"
	case Variable:
		return "its environment has no " + l.Name
	}
	return "it has no " + string(l.What) + " " + l.Name
}

// Lacks are sorted, bounded, and each is there once.
func Lacks(list []Lack) []Lack {
	list = slices.Clone(list[:min(len(list), lacksMax)])
	for i := range list {
		list[i] = Lack{LackOf(clip.To(string(list[i].What), wordMax)), clip.To(list[i].Name, lackMax)}
	}
	slices.SortFunc(list, func(a, b Lack) int { return cmp.Or(cmp.Compare(a.What, b.What), cmp.Compare(a.Name, b.Name)) })
	return slices.Compact(list)
}
