package crewdocs

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/files/prompts"
	"github.com/fairlead-dev/fairlead/internal/file"
)

func listed(name, status string, seat int) crew.Listed {
	return crew.Listed{Name: name, Status: status, Seat: seat}
}

func TestParseStatus(t *testing.T) {
	for text, want := range map[string][]crew.Listed{
		`{"agents":[]}`: nil,
		`{"agents":[{"name":"Lyra","status":"alive","gridPosition":0},{"name":"Kael","status":"alive","gridPosition":1}]}`: {listed("Lyra",
			"alive", 0), listed("Kael", "alive", 1)},
		`{"agents":[{"status":"idle","name":"Lyra","mood":["fine"]}],"at":1}`: {listed("Lyra", "idle", crew.NoSeat)},
		"{\n \"agents\": [ {\"name\": null, \"status\": \"alive\", \"gridPosition\": 8},\n {\"name\":\"K\",\"status\":\"alive\",\"gridPosition\":null} ]\n}": {
			listed("", "alive", 8), listed("K", "alive", crew.NoSeat),
		},
		`{"agents":[{"name":"Lyra","status":"alive","gridPosition":4711}]}`: {listed("Lyra", "alive", 4711)},
	} {
		got, err := ParseStatus([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	for text, fault := range map[string]string{
		`{}`:                           `agents is missing; if no member is alive, write {"agents":[]}`,
		`{"agents":null}`:              "agents is missing",
		`{"agents":{"Lyra":"alive"}}`:  "agents is no list",
		`{"agents":["Lyra"]}`:          "agents[0] is no JSON object",
		`{"agents":[{"name":"Lyra"}]}`: `agents[0].status is missing; write "alive", or leave the agent out`,
		`{"agents":[{},{"name":"x"}]}`: "agents[0].status is missing",
		`{"agents":[{"name":"L","status":"alive"},{"status":"alive"}]}`: "agents[1].name is missing, and so is gridPosition",
		`{"agents":[{"name":"L","status":true}]}`:                       "agents[0].status is no string",
		`{"agents":[{"name":7,"status":"alive"}]}`:                      "agents[0].name is no string",
		`{"agents":[{"name":"L","status":"alive","gridPosition":"0"}]}`: "agents[0].gridPosition is no whole number",
		`{"agents":[{"name":"L","status":"alive","gridPosition":-1}]}`:  "agents[0].gridPosition is no whole number",
		`{"agents":[{"name":"L","name":"K","status":"alive"}]}`:         "agents[0].name is given twice",
		`{"agents":[],"agents":[{"name":"L","status":"alive"}]}`:        "agents is given twice",
		`{"agents":[]} {}`: "after top-level value",
		`{"agents":[{"name":"L","status":"alive","gridPosition":99999999999999999999}]}`: "gridPosition is no whole number",
	} {
		got, err := ParseStatus([]byte(text))
		var wrong *file.JSONFault
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), fault) || !strings.HasPrefix(err.Error(), "[AGENT_STATUS]") ||
			got != nil {
			t.Errorf("%s: %v %v, want %q", text, got, err, fault)
		}
	}
}

func TestParseRegistered(t *testing.T) {
	whole := crew.Identity{
		Name: "Lyra", Color: "#c9b1e8", ColorName: "Violet Heaven", Gender: "woman", Seat: 0,
		Face: crew.Face{Eyes: "standard", Mouth: "gentle"}, Soul: "I am\nLyra.",
	}
	for text, want := range map[string]crew.Identity{
		`{"name":"Lyra","color":"#c9b1e8","colorName":"Violet Heaven","gender":"woman","gridPosition":0,"faceVariant":{"eyes":"standard","mouth":"gentle"},"individuationArtifact":"I am\nLyra."}`: whole,
		`{"gridPosition":5,"name":"é","faceVariant":null,"color":null,"more":{}}`:               {Name: "é", Seat: 5},
		`{"gridPosition":77,"name":"` + strings.Repeat("🜚", 64) + `","faceVariant":{"nose":1}}`: {Name: strings.Repeat("🜚", 64), Seat: 77},
	} {
		got, err := ParseRegistered([]byte(text))
		if err != nil || got != want {
			t.Errorf("%s: %+v %v", text, got, err)
		}
	}
	for text, fault := range map[string]string{
		`{}`:                                             "gridPosition is missing",
		`{"gridPosition":0}`:                             "name is missing or empty; register an agent once it has chosen its name",
		`{"name":"Lyra"}`:                                "gridPosition is missing",
		`{"name":null,"gridPosition":0}`:                 "name is missing or empty",
		`{"name":" \t","gridPosition":0}`:                "name has a control character",
		`{"name":"  ","gridPosition":0}`:                 "name is missing or empty",
		`{"name":"Lyra","gridPosition":null}`:            "gridPosition is missing",
		`{"name":"Lyra","gridPosition":true}`:            "gridPosition is no whole number",
		`{"name":"Ly\u0000","gridPosition":1}`:           "name has a control character",
		`{"name":"Ly\u2028","gridPosition":1}`:           "name has a control character",
		`{"name":"L","gridPosition":1,"gridPosition":2}`: "gridPosition is given twice",
		`{"name":"L","gridPosition":1,"gender":{}}`:      "gender is no string",
		`{"name":"L","gridPosition":1,"gender":"` + strings.Repeat("x", 201) +
			`"}`: "gender has 201 bytes; 200 is the most",
		`{"name":"L","gridPosition":1,"individuationArtifact":"` + strings.Repeat("<", SoulBytesMax) +
			`"}`: "individuationArtifact has mostly characters",
	} {
		got, err := ParseRegistered([]byte(text))
		var wrong *file.JSONFault
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), fault) || got != (crew.Identity{}) {
			t.Errorf("%.100s: %+v %v, want %q", text, got, err, fault)
		}
	}
}

// FuzzParseStatus and FuzzParseRegistered check that nothing panics, that accepted values keep their limits,
// and that they stay the same after encoding and parsing.
func FuzzParseStatus(f *testing.F) {
	f.Add([]byte(`{"agents":[{"name":"Lyra","status":"alive","gridPosition":0}]}`))
	f.Add([]byte(`{"agents":[{"name":"\ud800","status":"x","gridPosition":null}],"agents":7}`))
	f.Add([]byte(`{"agents":[{"status":"alive"}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		agents, err := ParseStatus(b)
		if err != nil {
			return
		}
		list := []map[string]any{}
		for _, one := range agents {
			line := map[string]any{"name": one.Name, "status": one.Status}
			if one.Seat != crew.NoSeat {
				line["gridPosition"] = one.Seat
			}
			list = append(list, line)
		}
		said, _ := json.Marshal(map[string]any{"agents": list})
		again, err := ParseStatus(said)
		if diff := cmp.Diff(agents, again); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
	})
}

func FuzzParseRegistered(f *testing.F) {
	f.Add([]byte(`{"name":"Lyra","color":"#c9b1e8","gridPosition":0,"faceVariant":{"eyes":"standard"},"individuationArtifact":"I am"}`))
	f.Add([]byte(`{"name":"\u202e","gridPosition":1e2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		is, err := ParseRegistered(b)
		if err != nil {
			return
		}
		if strings.TrimSpace(is.Name) == "" || len([]rune(is.Name)) > 64 || strings.ContainsFunc(is.Name, prompts.BreaksLine) ||
			len(is.Soul) > SoulBytesMax || is.Seat < 0 {
			t.Fatalf("%+v was taken", is)
		}
		doc := crew.Document{Identity: is, Status: crew.Alive}
		read, _, err := ReadDocument(WriteDocument(&doc))
		if diff := cmp.Diff(doc, read); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
	})
}

// The examples in the lead's instructions are valid for the parsers.
func TestLeadInstructions(t *testing.T) {
	text := prompts.LeadInstructions("julian")
	if strings.Contains(text, "{lead}") || !strings.Contains(text, "You are **julian**") || !strings.Contains(text, "`[julian]: `") {
		t.Errorf("it does not speak to julian:\n%s", text)
	}
	read := map[string]int{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if object, ok := strings.CutPrefix(line, statusMarkerName+" {"); ok {
			if _, err := ParseStatus([]byte("{" + object)); err != nil {
				t.Error(err)
			}
			read[statusMarkerName]++
		}
		if object, ok := strings.CutPrefix(line, registerMarkerName+" {"); ok {
			if is, err := ParseRegistered([]byte("{" + object)); err != nil || is.Soul == "" || is.Face.Mouth == "" {
				t.Errorf("%+v %v", is, err)
			}
			read[registerMarkerName]++
		}
	}
	if read[statusMarkerName] != 2 || read[registerMarkerName] != 1 {
		t.Errorf("it shows %v", read)
	}
}
