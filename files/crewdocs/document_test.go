package crewdocs

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/internal/file"
)

func seedDocument(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/agent_identity.json")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The seed's document is written back byte for byte (seed 001).
func TestSeedsDocumentStaysAsItIs(t *testing.T) {
	doc, bare, err := ReadDocument(seedDocument(t))
	if err != nil || bare {
		t.Fatal(bare, err)
	}
	want := crew.Document{
		Status: crew.Alive,
		Identity: crew.Identity{
			Name: "Lyra", Color: "#c9b1e8", ColorName: "Violet Heaven", Gender: "woman", Face: crew.Face{Eyes: "standard", Mouth: "gentle"},
			Soul: "I took a long time to answer.\n\nThen I said: \"Lyra\" — <that> one & no other.",
		},
		CreatedAt: time.Date(2026, 2, 16, 0, 0, 0, 0, time.UTC), LastAliveAt: time.Date(2026, 2, 16, 12, 0, 0, 0, time.UTC),
		LastSession: "1f0c4e9a-7f1c-4d7e-9a53-0c1c2a9b6d11",
	}
	if diff := cmp.Diff(want, doc); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(string(seedDocument(t)), string(WriteDocument(&doc))); diff != "" {
		t.Error(diff)
	}
	if DocumentSum(&doc) != string(file.SumOf(seedDocument(t))) {
		t.Error("the sum is not that of the bytes")
	}
}

// A placeholder has only a seat; its name is null (seed 001).
func TestPlaceholder(t *testing.T) {
	doc := crew.Document{
		ID: "agent-3", Status: crew.Hatching, Identity: crew.Identity{Seat: 7},
		CreatedAt: time.Date(2026, 2, 16, 1, 2, 3, 456789, time.FixedZone("", 3600)),
	}
	want := `{
  "type": "agent-identity",
  "status": "hatching",
  "name": null,
  "color": "",
  "colorName": "",
  "gender": "",
  "gridPosition": 7,
  "faceVariant": {
    "eyes": "",
    "mouth": ""
  },
  "individuationArtifact": "",
  "createdAt": "2026-02-16T00:02:03.000Z",
  "lastAliveAt": null,
  "lastSessionId": null
}
`
	if diff := cmp.Diff(want, string(WriteDocument(&doc))); diff != "" {
		t.Error(diff)
	}
}

func TestReadDocument(t *testing.T) {
	for _, c := range []struct{ name, file, extra string }{
		{"the least there can be (P12)", `{"type":"agent-identity","gridPosition":3}`, ""},
		{"nulls", `{"type":"agent-identity","gridPosition":3,"status":null,"name":null,"faceVariant":null,"createdAt":null,"lastAliveAt":null,"individuationArtifact":null}`, ""},
		{
			"unknown fields keep their order and their numbers (X7)",
			`{"_rev":"3-x","type":"agent-identity","z":{"b":1e400,"a":[12345678901234567890, 2.50]},"gridPosition":3,"a":"<&>\u003c\\u003e\u2028 é"}`,
			`{"_rev":"3-x","z":{"b":1e400,"a":[12345678901234567890,2.50]},"a":"\u003c\u0026\u003e\u003c\\u003e\u2028 é"}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc, bare, err := ReadDocument([]byte(c.file))
			if err != nil {
				t.Fatal(err)
			}
			if !bare || doc.Status != crew.Unknown || doc.Seat != 3 || string(doc.Extra) != c.extra {
				t.Errorf("bare %v, %+v, extra %s", bare, doc, doc.Extra)
			}
			twice(t, doc)
		})
	}
	doc, _, err := ReadDocument([]byte(`{"type":"agent-identity","gridPosition":3,"b":"<&>\u003c\\u003e","a":{"x":1.50}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(WriteDocument(&doc)); !strings.HasSuffix(got,
		",\n  \"b\": \"<&><\\\\u003e\",\n  \"a\": {\n    \"x\": 1.50\n  }\n}\n") {
		t.Errorf("written %s", got)
	}
	doc, _, err = ReadDocument([]byte(`{"a":1,"faceVariant":{"brows":{"n":2.0},"eyes":"x","<":"<"},"type":"agent-identity","gridPosition":3}`))
	if err != nil {
		t.Fatal(err)
	}
	twice(t, doc)
	if got := string(WriteDocument(&doc)); !strings.Contains(got,
		"{\n    \"eyes\": \"x\",\n    \"mouth\": \"\",\n    \"brows\": {\n      \"n\": 2.0\n    },\n    \"<\": \"<\"\n  },\n") ||
		!strings.HasSuffix(got, "null,\n  \"a\": 1\n}\n") {
		t.Errorf("written %s", got)
	}
	for word, want := range map[string]crew.Status{
		"alive": crew.Alive, "expired": crew.Expired, "Alive": crew.Unknown, "": crew.Unknown,
		"none": crew.Unknown,
	} {
		doc, bare, err := ReadDocument([]byte(`{"type":"agent-identity","gridPosition":3,"status":"` + word + `"}`))
		if err != nil || bare || doc.Status != want {
			t.Errorf("status %q: %q %v %v", word, doc.Status, bare, err)
		}
	}
}

// twice checks that a written document is read as the same value, also after it was stored in the journal,
// and is written as the same bytes again.
func twice(t *testing.T, doc crew.Document) {
	t.Helper()
	written := WriteDocument(&doc)
	again, bare, err := ReadDocument(written)
	if err != nil || bare {
		t.Fatalf("what was written is not read: bare %v, %v\n%s", bare, err, written)
	}
	if diff := cmp.Diff(doc, again); diff != "" {
		t.Fatalf("read again it differs: %s", diff)
	}
	kept, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var replayed crew.Document
	if err := json.Unmarshal(kept, &replayed); err != nil {
		t.Fatal(err)
	}
	if got := WriteDocument(&replayed); !bytes.Equal(got, written) {
		t.Fatalf("after a restart it is written as\n%s\nwas\n%s", got, written)
	}
}

func TestReadDocumentRefuses(t *testing.T) {
	with := func(more string) string { return `{"type":"agent-identity","gridPosition":3,` + more + `}` }
	for content, fault := range map[string]string{
		"":                                "the file is empty",
		"[]":                              "is no JSON object",
		"null":                            "is no JSON object",
		`{"type":"agent-identity"`:        "unexpected end",
		with(`"a":1`) + "{}":              "after top-level value",
		`{"gridPosition":3}`:              "type is missing",
		`{"type":"agent-identity"}`:       "gridPosition is missing",
		`{"type":"dog","gridPosition":3}`: `type is "dog"`,
		`{"type":"agent-identity","gridPosition":"3"}`:                                     "gridPosition is no whole number",
		`{"type":"agent-identity","gridPosition":3.0}`:                                     "gridPosition is no whole number",
		`{"type":"agent-identity","gridPosition":-1}`:                                      "gridPosition is no whole number",
		`{"type":"agent-identity","gridPosition":1e1}`:                                     "gridPosition is no whole number",
		with(`"name":"a","name":"b"`):                                                      "name is given twice",
		with(`"x":1,"x":2`):                                                                "x is given twice",
		with(`"faceVariant":{"eyes":"a","eyes":"b"}`):                                      "faceVariant.eyes is given twice",
		with(`"faceVariant":"a"`):                                                          "faceVariant is no JSON object",
		with(`"faceVariant":{"eyes":3}`):                                                   "faceVariant.eyes is no string",
		with(`"status":3`):                                                                 "status is no string",
		with(`"name":["a"]`):                                                               "name is no string",
		with(`"name":"a\nb"`):                                                              "name has a control character",
		with(`"name":"a\u202eb"`):                                                          "name has a control character",
		with(`"name":"` + strings.Repeat("é", 65) + `"`):                                   "name has 65 characters",
		with(`"color":"` + strings.Repeat("x", 201) + `"`):                                 "color has 201 bytes",
		with(`"createdAt":"yesterday"`):                                                    "createdAt is no time",
		with(`"createdAt":"0000-01-01T00:00:00+01:00"`):                                    "createdAt is no time",
		with(`"createdAt":1700000000`):                                                     "createdAt is no string",
		with(`"individuationArtifact":"` + strings.Repeat("x", SoulBytesMax+1) + `"`):      "individuationArtifact has 262145 bytes",
		with(`"individuationArtifact":"` + strings.Repeat(`\u0001`, SoulBytesMax/2) + `"`): "individuationArtifact has mostly characters",
		with(`"x":"` + strings.Repeat("x", documentExtraMax) +
			`"`): "x and the other fields that Fairlead does not know have 65544 bytes",
		with(`"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100)): "nested deeper than",
		with(`"x":"` + strings.Repeat("x", DocumentBytesMax) + `"`):        "larger than 2 MiB",
		with("\"x\":\"\xff\""):         "not valid UTF-8",
		with(`"name":"a" "color":"b"`): "invalid character",
	} {
		doc, _, err := ReadDocument([]byte(content))
		var wrong *file.JSONFault
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), fault) {
			t.Errorf("%.100s: %v, want %q", content, err, fault)
		}
		if err != nil && (doc.Name != "" || len(err.Error()) > 400) {
			t.Errorf("%.100s: a fault of %d bytes and a document %+v", content, len(err.Error()), doc)
		}
	}
}

// FuzzReadDocument checks that a document that was read is the same after writing and reading, and that
// nothing panics.
func FuzzReadDocument(f *testing.F) {
	f.Add(seedDocument(f))
	f.Add([]byte(`{"type":"agent-identity","gridPosition":3,"_id":"x","a":{"b":[1.50,"\u003c<\\u0026"]},"createdAt":"2026-02-16 00:00:00.1239+01:00"}`))
	f.Add([]byte(`{"x":1,"faceVariant":{"brows":{"n":[2.0]},"eyes":"x"},"type":"agent-identity","gridPosition":3}`))
	f.Add([]byte(`{"type":"agent-identity","gridPosition":99,"name":"\ud800","individuationArtifact":"\u0000\u2028"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		doc, _, err := ReadDocument(b)
		if err == nil {
			twice(t, doc)
		}
	})
}
