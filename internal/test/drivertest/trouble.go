package drivertest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
)

// Troubles are the ways in which a provider fails: it rejects the key, limits the rate, is overloaded, or cannot be reached. A recording
// of each is testdata/dialogues/PROGRAM-TROUBLE.jsonl. livetest.RecordTroubles records them.
var Troubles = []string{"key", "limit", "overloaded", "gone"}

// Speaks is how a program speaks of its provider's troubles.
type Speaks struct {
	Program string
	Silent  bool     // it says nothing while it tries again
	Waits   []string // troubles in which it tries without end. A silent program is not recorded there: it says nothing
}

// ProviderTroubles checks what the driver makes of the recorded troubles of a program: the session fails, a wrong key and a rate limit
// have reasons of their own, and every sign of the wait has the code of the trouble.
func ProviderTroubles(t *testing.T, is Speaks) {
	t.Helper()
	codes := map[string]driver.ProviderCode{
		"key": driver.ProviderAuthentication, "limit": driver.ProviderRateLimit, "overloaded": driver.ProviderUnavailable,
		"gone": driver.ProviderNetwork,
	}
	reasons := map[string][]string{"key": {session.ReasonNotSignedIn}, "limit": {session.ReasonRateLimited}}
	for _, trouble := range is.Recorded() {
		text, err := os.ReadFile(filepath.Join("testdata", "transcripts", is.Program+"-"+trouble+".raw"))
		if err != nil {
			t.Errorf("%s has no recording: %v", is.Program, err)
			continue
		}
		want := reasons[trouble]
		switch {
		case slices.Contains(is.Waits, trouble):
			want = []string{adapter.ReasonCancelled}
		case want == nil:
			want = []string{adapter.ReasonFailed, session.ReasonProviderError}
		}
		signs, ended := 0, false
		for line := range bytes.Lines(text) {
			var e driver.Fact
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatal(err)
			}
			switch e.Kind {
			case driver.ProviderAway:
				if signs++; e.Provider != codes[trouble] {
					t.Errorf("%s, %s: %q has the code %s", is.Program, trouble, e.Text, e.Provider)
				}
			case driver.Stopped:
				if ended = true; e.OK || !slices.Contains(want, e.Reason) {
					t.Errorf("%s, %s: ended with ok %t, %s; want one of %q", is.Program, trouble, e.OK, e.Reason, want)
				}
			}
		}
		if !ended || is.Silent != (signs == 0) {
			t.Errorf("%s, %s: %d signs, ended %t", is.Program, trouble, signs, ended)
		}
	}
}

// Recorded lists the troubles with a recording in testdata.
func (s Speaks) Recorded() (all []string) {
	for _, trouble := range Troubles {
		if !s.Silent || !slices.Contains(s.Waits, trouble) {
			all = append(all, trouble)
		}
	}
	return all
}
