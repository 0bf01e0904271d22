package adapter_test

import (
	"testing"

	reason "github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
)

// TestAnswerWithoutWork checks which answers without a tool call and usage count. Each failure has a twin:
// the same text beside a sign that the model has answered.
func TestAnswerWithoutWork(t *testing.T) {
	table := adapter.ReadProviderErrors([]byte(`[{"code":"authentication","pattern":"^Wrong key\\b"},{"code":"rate_limit","pattern":"^Slow down\\b"},
		{"code":"context_full","pattern":"^Too long\\b"},{"code":"network","pattern":"^No way\\b"}]`))
	for text, want := range map[string]string{
		"":                      reason.ReasonNoAnswer,
		" \n":                   reason.ReasonNoAnswer,
		"Wrong key for x":       reason.ReasonNotSignedIn,
		"Slow down, please":     reason.ReasonRateLimited,
		"Too long":              reason.ReasonContextExhausted,
		"No way to x":           reason.ReasonProviderError,
		"TURN_PASS":             "",
		"The Wrong key is used": "",
		"hello":                 "",
		`{"error":{"code":"context_length_exceeded","message":"x"}}`:      reason.ReasonProviderError,
		`it failed: {"type":"error","error":{"type":"overloaded_error"}}`: reason.ReasonProviderError,
		`{"error":"none"}`: "",
		`{"error":{}}`:     "",
		`func main() { x() } {"error":{"code":1}}`: reason.ReasonProviderError,
	} {
		for _, works := range []bool{false, true} {
			a := adapter.Answers{Table: table}
			a.Begin()
			a.Say(text)
			if works {
				a.Work()
			}
			got := ""
			if end := a.Failure(); end != nil {
				got = end.Reason
			}
			if works && got != "" || !works && got != want {
				t.Errorf("%q, works %t: %q, want %q", text, works, got, want)
			}
		}
	}
}
