package worker

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
)

// A host that has seen many engine hosts come and go still learns the present ones, and keeps the address of its invitation.
func TestAddressesOfManyEngineHosts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := SaveConfig(dir, example); err != nil {
		t.Fatal(err)
	}
	a := &addresses{log: slog.New(slog.DiscardHandler), dir: dir}
	var now []cluster.EngineHost
	for n := range 3 * addressesMax {
		name := fmt.Sprintf("e%d", n)
		now = append(now, cluster.EngineHost{Name: name, Address: name + ":4222"})
		now = now[max(0, len(now)-3):]
		a.learn(now)
		if all := a.now(); n > 0 && !slices.Contains(all, name+":4222") || len(all) > addressesMax ||
			!slices.Equal(all[:2], example.Addresses) {
			t.Fatalf("with engine host %s: %q", name, all)
		}
	}
	for _, e := range now {
		if !slices.Contains(a.next(), e.Address) {
			t.Errorf("engine host %s is not dialled: %q", e.Name, a.now())
		}
	}
	if again, err := LoadConfig(dir); err != nil || !slices.Equal(again.Addresses, a.now()) {
		t.Errorf("after a new start: %+v, %v", again, err)
	}
	if none := (&addresses{}).next(); len(none) != 0 {
		t.Errorf("%q", none)
	}
}
