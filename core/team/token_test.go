package team

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fairlead-dev/fairlead/core/control"
)

// TestTokenHashes checks that a session knows the hashes of its newest tokens until it ends.
func TestTokenHashes(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", "continuous")
	id := c.session("ada")
	for n := range tokensMax + 2 {
		c.must("ada", TokenGiven{Session: id, Hash: fmt.Sprint("h", n)})
	}
	if got := c.Agents["ada"].Session.TokenHashes; !slices.Equal(got, []string{"h2", "h3", "h4", "h5"}) {
		t.Errorf("the tokens are %v", got)
	}
	c.starts("ada")
	if _, err := c.try("ada", TokenGiven{Session: id, Hash: "late"}); err == nil {
		t.Error("a running process got a token")
	}
	c.ends("ada", control.OK)
	if past := c.Agents["ada"].Past[0]; past.ID != id || past.TokenHashes != nil {
		t.Errorf("after its end: %+v", past)
	}
	c.runs("r", RunSettings{}, "pack !")
	c.tells("r", "pack", TokenGiven{Session: c.sit("r", "pack").ID, Hash: "h"})
	if got := c.sit("r", "pack").TokenHashes; !slices.Equal(got, []string{"h"}) {
		t.Errorf("the tokens of a step without an agent are %v", got)
	}
}
