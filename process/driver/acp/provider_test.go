package acp

import (
	"testing"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
)

func TestProviderErrors(t *testing.T) { drivertest.ProviderErrors(t, providerErrors) }

// TestErrorAsAnswer checks that a program's error is no success, unless something shows that a model has
// answered.
func TestErrorAsAnswer(t *testing.T) {
	const tool = `{"sessionUpdate":"tool_call","toolCallId":"c1","title":"look","kind":"read","status":"completed"}`
	for name, c := range map[string]struct {
		says, update, usage, want string
	}{
		"nothing":             {want: session.ReasonNoAnswer},
		"nothing, with usage": {usage: `,"usage":{"inputTokens":1,"outputTokens":1}`, want: adapter.ReasonCompleted},
		"wrong key": {
			says: "Error: Authentication failed with provider at http://127.0.0.1:1/v1 (HTTP 401).",
			want: session.ReasonNotSignedIn,
		},
		"wrong key, with usage": {
			says:  "Error: Authentication failed with provider at x",
			usage: `,"usage":{"inputTokens":1,"outputTokens":1}`, want: adapter.ReasonCompleted,
		},
		"wrong key, with a call": {says: "Error: Authentication failed with provider at x", update: tool, want: adapter.ReasonCompleted},
		"full": {
			says: `{"error":{"code":"context_length_exceeded","message":"x"}}`,
			want: session.ReasonContextExhausted,
		},
		"typed":           {says: `{"error":{"code":"odd"}}`, want: session.ReasonProviderError},
		"typed, too many": {says: `{"error":{"code":"rate_limit_exceeded"}}`, want: session.ReasonRateLimited},
		"pass":            {says: "TURN_PASS", want: adapter.ReasonCompleted},
		"quoted": {
			says: "Error 429 means too many requests.", usage: `,"usage":{"inputTokens":1,"outputTokens":1}`,
			want: adapter.ReasonCompleted,
		},
		"not quoted": {says: "Error 429 means too many requests.", want: session.ReasonRateLimited},
		"after a call": {
			says: "Error: 500 it broke", update: tool, usage: `,"usage":{"inputTokens":1,"outputTokens":1}`,
			want: adapter.ReasonFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, driver.Work, "go").play(func(f *fake) {
				f.greeted()
				p := f.expect("session/prompt")
				if c.update != "" {
					f.update(c.update)
				}
				if c.says != "" {
					f.says(c.says)
				}
				f.result(p, `{"stopReason":"end_turn"`+c.usage+`}`)
				f.next()
			})
			s.ended(c.want == adapter.ReasonCompleted, c.want, "")
		})
	}
}
