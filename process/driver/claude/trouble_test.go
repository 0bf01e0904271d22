package claude

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// A typed error counts first, then the HTTP status. An error without a status is one of the network.
func TestTroubleOf(t *testing.T) {
	for _, c := range []struct {
		word   string
		status adapter.Number
		want   driver.ProviderCode
	}{
		{"authentication_failed", 401, driver.ProviderAuthentication},
		{"authentication_failed", 0, driver.ProviderAuthentication},
		{"oauth_org_not_allowed", 403, driver.ProviderAuthentication},
		{"billing_error", 400, driver.ProviderBilling},
		{"rate_limit", 429, driver.ProviderRateLimit},
		{"server_error", 503, driver.ProviderUnavailable},
		{"overloaded", 529, driver.ProviderUnavailable},
		{"unknown", 0, driver.ProviderNetwork},
		{"unknown", 401, driver.ProviderAuthentication},
		{"unknown", 402, driver.ProviderBilling},
		{"unknown", 429, driver.ProviderRateLimit},
		{"unknown", 418, driver.ProviderUnavailable},
		{"something new", 403, driver.ProviderAuthentication},
		{"something new", 0, driver.ProviderUnavailable},
		{"", 1e300, driver.ProviderUnavailable},
	} {
		if got := troubleOf(c.word, c.status); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.word, c.status, got, c.want)
		}
	}
}

// A text that begins like an error of the provider is the model's if the answer has usage. Without usage, and after a call, it is the
// program's.
func TestQuotedError(t *testing.T) {
	const (
		call = `{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"a"}}],"usage":{"input_tokens":5,"output_tokens":5}}}`
		text = `{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"Error 429 means too many requests."}],"usage":{"input_tokens":USED,"output_tokens":USED}}}`
		end  = `{"type":"result","subtype":"success","is_error":false,"result":"Error 429 means too many requests.","usage":{"input_tokens":0,"output_tokens":0}}`
	)
	for name, c := range map[string]struct {
		before, used string
		ok           bool
	}{
		"quoted":       {"", "7", true},
		"no usage":     {"", "0", false},
		"after a call": {call, "0", false},
	} {
		h := newHearing(speech.NewWriter(io.Discard), programs[0], adapter.Part{})
		h.prompted = true
		h.heard.Begin()
		var got lineResult
		for _, line := range []string{c.before, strings.ReplaceAll(text, "USED", c.used), end} {
			if line != "" {
				got = h.line(json.RawMessage(line), "mine")
			}
		}
		if !got.ended || got.stop.OK != c.ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
