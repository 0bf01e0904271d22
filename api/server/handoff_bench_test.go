package server

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/journal/sqlite"
	"github.com/fairlead-dev/fairlead/view"
)

// BenchmarkHandOff measures a turn that is handed on over the socket: from the request in which
// one foreign agent says that it is done until the request in which the other one waits for
// actions is answered with its turn, beside one bare write and sync of 200 bytes in the same run.
func BenchmarkHandOff(b *testing.B) {
	j, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "journal.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { j.Close() })
	c := dial(b, serveTeam(b, j, newWorkspace(b), strings.NewReplacer(", coder]", "]", "maxRounds: 2", "maxRounds: 0").Replace(twoScouts)))
	for _, name := range []string{"scout", "pilot"} {
		if _, err := client.Post[api.Joined](b.Context(), c, "/agents/"+name+"/ready", api.EmptyBody{}); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := c.Channels.Say(b.Context(), "reviews", "Talk.", ""); err != nil {
		b.Fatal(err)
	}
	bare, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	if err != nil {
		b.Fatal(err)
	}
	defer bare.Close()
	line := []byte(strings.Repeat("x", 200))
	speaks, next := "scout", "pilot"
	action := theTurn(b, c, speaks)
	var hands, ratios []float64
	for b.Loop() {
		began := time.Now()
		if _, err := bare.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := bare.Sync(); err != nil {
			b.Fatal(err)
		}
		sync := time.Since(began).Seconds()

		got := make(chan view.ActionView, 1)
		go func() { got <- theTurn(b, c, next) }()
		began = time.Now()
		if _, err := speak(b.Context(), c, view.Speech{Channel: "reviews", Agent: speaks, Turn: action.Turn, Text: "Go on.", Complete: true}); err != nil {
			b.Fatal(err)
		}
		action = <-got
		hand := time.Since(began).Seconds()
		hands, ratios = append(hands, hand*1e6), append(ratios, hand/sync)
		if _, err := client.Post[api.Ordered](b.Context(), c, "/agents/"+next+"/actions/done", api.ConfirmBody{Key: action.Key}); err != nil {
			b.Fatal(err)
		}
		speaks, next = next, speaks
	}
	for name, values := range map[string][]float64{"µs/hand-off": hands, "hand-off/bare-sync": ratios} {
		slices.Sort(values)
		b.ReportMetric(values[len(values)/2], name)
	}
	b.ReportMetric(hands[len(hands)*99/100], "µs/hand-off-p99")
	b.ReportMetric(0, "ns/op")
}

// theTurn waits until an agent has the turn. The caller acknowledges the action.
func theTurn(b *testing.B, c *client.Client, name string) view.ActionView {
	list, err := actionsOf(b.Context(), c, name, time.Minute)
	if err != nil || len(list) != 1 || list[0].Do != "tell_turn" {
		b.Errorf("actions of %s: %+v, %v", name, list, err)
		return view.ActionView{}
	}
	return list[0]
}
