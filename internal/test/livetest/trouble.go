package livetest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/internal/test/scriptmodel"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// troubles are the prompts of drivertest.Troubles.
var troubles = map[string]string{"key": "do: error 401", "limit": "do: error 429 6", "overloaded": "do: error 503", "gone": "do: say never"}

const (
	nowhere  = "http://127.0.0.1:1/v1" // a provider that cannot be reached
	signsMax = 3                       // signs of a provider that does not answer after which a program is stopped: some wait without end
	// items of a list that are recorded; a longer one, as of commands and models, is not about the provider
	itemsMax = 5
)

// RecordTroubles records with FAIRLEAD_RECORD=1 how a program speaks of a provider that fails, as PROGRAM-TROUBLE.jsonl in
// testdata/dialogues. Then UPDATE=1 renews what the driver makes of it. It takes up to five minutes, because some programs
// try that long in silence. prepare may change the program's settings.
func RecordTroubles(t *testing.T, p adapter.Protocol, is drivertest.Speaks, program func(testing.TB, *scriptmodel.Server) Program,
	prepare func(*Program),
) {
	if os.Getenv("FAIRLEAD_RECORD") == "" {
		t.Skip("set FAIRLEAD_RECORD=1 to record real programs again")
	}
	for _, trouble := range is.Recorded() {
		t.Run(is.Program+"-"+trouble, func(t *testing.T) {
			t.Parallel()
			model := scriptmodel.Start(t)
			if trouble == "gone" {
				model.URL = nowhere
			}
			ready := program(t, model)
			if prepare != nil {
				prepare(&ready)
			}
			file := filepath.Join("testdata", "dialogues", is.Program+"-"+trouble+".jsonl")
			record(t, p, ready, file, troubles[trouble], strings.TrimSuffix(strings.TrimPrefix(model.URL, "http://"), "/v1"))
			shorten(t, file)
		})
	}
}

// record records one session. Questions are answered with yes.
func record(t *testing.T, p adapter.Protocol, is Program, file, prompt, model string) {
	t.Helper()
	repo := filepath.Join(is.Home, "repo")
	if err := os.Mkdir(repo, 0o700); err != nil {
		t.Fatal(err)
	}
	signs := 0
	tell := func(e driver.Fact) []speech.Order {
		switch e.Kind {
		case "":
			return []speech.Order{{Type: speech.OrderStart, Text: prompt}}
		case driver.Listening:
			return []speech.Order{{}}
		case driver.PermissionAsked:
			for _, o := range e.Options {
				if o.Kind == "allow_once" {
					return []speech.Order{{Type: speech.OrderAnswer, ID: e.ID, Option: o.ID}}
				}
			}
			t.Errorf("it cannot be allowed once: %+v", e.Options)
		case driver.ProviderAway:
			if signs++; signs == signsMax {
				return []speech.Order{{Type: speech.OrderCancel}}
			}
		}
		return nil
	}
	part := adapter.Part{Kind: p.Name(), Name: "coder", Session: "coder-17", Attempt: 1, What: driver.Work, Command: is.Command, Dir: repo}
	stop := drivertest.Record(
		t, p, part, append(Bare(is.Home), is.Env...), file, tell,
		is.Command[0], "/usr/bin/"+is.Name, repo, "/work/repo", is.Home, "/home/user", strings.ReplaceAll(is.Home, "/", "-"), "-home-user",
		model, "127.0.0.1:1",
	)
	t.Logf("%+v", stop)
}

// shorten empties the long lists in a recording.
func shorten(t *testing.T, file string) {
	t.Helper()
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for line := range bytes.Lines(old) {
		var e drivertest.Entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		var msg any
		if e.Dir == "recv" && json.Unmarshal(e.Msg, &msg) == nil {
			e.Msg = encode.JSON(short(msg))
		}
		text.Write(append(encode.JSON(e), '\n'))
	}
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func short(of any) any {
	switch of := of.(type) {
	case []any:
		if len(of) > itemsMax {
			return []any{}
		}
		for i := range of {
			of[i] = short(of[i])
		}
	case map[string]any:
		for name := range of {
			of[name] = short(of[name])
		}
	}
	return of
}
