package network

import (
	"fmt"
	"testing"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

// TestFold checks that no host of a session is lost before the limit, that further ones are counted together, and that a program which
// asks for thousands of hosts does not fill the journal.
func TestFold(t *testing.T) {
	var f fold
	var journaled []team.Contact
	changes := 0
	const hosts, tries = 5000, 2
	for range tries {
		for i := range hosts {
			if f.add(fmt.Sprintf("h%d.example.org", i), wire.Event{Verdict: wire.VerdictAsk, Count: 1}) {
				journaled = append(journaled, f.news...)
				f.news, changes = nil, changes+1
			}
		}
	}
	journaled = append(journaled, f.news...)
	names, refused := map[string]int{}, 0
	for _, c := range journaled {
		names[c.Host] += c.Refused
		refused += c.Refused
	}
	if len(names) != knownMax+1 || names["h0.example.org"] != tries || names["h999.example.org"] != tries || refused != tries*hosts ||
		names[otherHosts] != tries*(hosts-knownMax) {
		t.Errorf("%d hosts with %d attempts are journaled, %d of them others", len(names), refused, names[otherHosts])
	}
	if most := atOnceMax + tries*knownMax/newsMax + 1; changes > most {
		t.Errorf("%d changes, %d are enough", changes, most)
	}
}
