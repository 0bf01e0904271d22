package claudehook

import "testing"

const transcript = `cut off"}]}}
{"type":"user","message":{"role":"user","content":"Write it"}}
{"type":"assistant","message":{"id":"m1","content":[{"type":"thinking","thinking":"MAIN may not.","signature":"x"}]}}
{"type":"assistant","isSidechain":true,"message":{"content":[{"type":"text","text":"an agent's"}]}}
{"type":"system","subtype":"status"}
{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"I delegate."},{"type":"tool_use","id":"t1","input":{}}]}}
`

func TestWhatMainThought(t *testing.T) {
	for text, want := range map[string]string{
		transcript: "MAIN may not.\n\nI delegate.",
		transcript + `{"type":"user","message":{"content":[{"type":"tool_result"}]}}`: "",
		"": "", "{}\n[]\nnull\n": "", `{"type":"assistant","message":{"content":"plain"}}`: "", `{"type":"assistant","message":7}`: "",
	} {
		if got := lastThought([]byte(text)); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func FuzzTranscript(f *testing.F) {
	f.Add([]byte(transcript))
	f.Fuzz(func(_ *testing.T, tail []byte) { lastThought(tail) })
}
