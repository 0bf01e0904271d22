package codex

import (
	"testing"

	"github.com/fairlead-dev/fairlead/process/driver"
)

// What codex says while it tries again has the code that the same words have at the end of an answer. The samples are recorded, and
// those of the error that ends an answer are in provider_errors.json.
func TestCodeOfTrouble(t *testing.T) {
	for text, want := range map[string]driver.ProviderCode{
		"Reconnecting... 1/2 (unexpected status 401 Unauthorized: scripted error 401, url: http://127.0.0.1:1/v1/responses)":        driver.ProviderAuthentication,
		"Reconnecting... 1/5 (unexpected status 403 Forbidden: no)":                                                                 driver.ProviderAuthentication,
		"Reconnecting... 1/5 (unexpected status 402 Payment Required: no)":                                                          driver.ProviderBilling,
		"Reconnecting... 1/2 (exceeded retry limit, last status: 429 Too Many Requests)":                                            driver.ProviderRateLimit,
		"Reconnecting... 1/2 (unexpected status 503 Service Unavailable: scripted error 503, url: http://127.0.0.1:1/v1/responses)": driver.ProviderUnavailable,
		"Reconnecting... 1/5 (unexpected status 500 Internal Server Error: x, url: http://127.0.0.1:4291/v1/responses)":             driver.ProviderUnavailable,
		"Reconnecting... waiting for network (Connection failed: error sending request)":                                            driver.ProviderNetwork,
		"Reconnecting... 2/5 (stream disconnected before completion)":                                                               driver.ProviderNetwork,
		"stream error: stream disconnected before completion; retrying 1/5 in 187ms…":                                               driver.ProviderNetwork,
		"Reconnecting... 1/5": driver.ProviderUnavailable,
	} {
		if !awayWords.MatchString(text) {
			t.Errorf("%q is not understood as a wait", text)
		}
		if got := troubleOf(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
