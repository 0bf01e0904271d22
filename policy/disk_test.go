package policy_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/policy/policytest"
)

// The scene in memory and the scene on disk agree; otherwise the table proves nothing.
func TestFakeDiskIsTheRealOne(t *testing.T) {
	scene := policytest.Build(t)
	fake, real := policytest.Fake(scene), dispatchfolder.Disk{}
	var paths []string
	for _, e := range scene.Tree() {
		paths = append(paths, e.Path, e.Path+"/..", e.Path+"/new", e.Path+"/../new/deep")
	}
	for _, p := range paths {
		want, wantErr := real.Look(p)
		got, err := fake.Look(p)
		if (err == nil) != (wantErr == nil) || got != want {
			t.Errorf("Look(%s) is %+v, %v in memory, and %+v, %v on disk", p, got, err, want, wantErr)
		}
	}
}
