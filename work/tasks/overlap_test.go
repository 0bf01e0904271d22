package tasks

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/fairlead-dev/fairlead/read/view"
)

// Two open tasks are named to each other if they change one file and land on one branch.
func TestOverlaps(t *testing.T) {
	t.Parallel()
	one := func(id, base, status string) *view.TaskView {
		return &view.TaskView{ID: id, Base: base, Status: status}
	}
	many := []string{"a", "b", "c", "d", "e", "f", "g"}
	for name, c := range map[string]struct {
		open  []*view.TaskView
		files map[string][]string
		want  map[string][]view.TaskOverlap
	}{
		"none": {
			[]*view.TaskView{one("T1", "main", "working"), one("T2", "main", "working")},
			map[string][]string{"T1": {"a"}, "T2": {"b"}},
			map[string][]view.TaskOverlap{},
		},
		"one file": {
			[]*view.TaskView{one("T1", "main", "working"), one("T2", "main", "needs_you"), one("T3", "main", "queued")},
			map[string][]string{"T1": {"a", "b"}, "T2": {"b", "c"}},
			map[string][]view.TaskOverlap{
				"T1": {{ID: "T2", Status: "needs_you", Files: []string{"b"}}}, "T2": {{ID: "T1", Status: "working", Files: []string{"b"}}},
			},
		},
		"another branch": {
			[]*view.TaskView{one("T1", "main", "working"), one("T2", "dev", "working")},
			map[string][]string{"T1": {"a"}, "T2": {"a"}},
			map[string][]view.TaskOverlap{},
		},
		"many files": {
			[]*view.TaskView{one("T1", "main", "working"), one("T2", "main", "working")},
			map[string][]string{"T1": many, "T2": many},
			map[string][]view.TaskOverlap{
				"T1": {{ID: "T2", Status: "working", Files: many[:5], More: 2}}, "T2": {{ID: "T1", Status: "working", Files: many[:5], More: 2}},
			},
		},
	} {
		if got := overlaps(c.open, c.files); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v (%v)", name, got, c.want, slices.Sorted(maps.Keys(got)))
		}
	}
}
