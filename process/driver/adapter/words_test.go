package adapter_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/process/driver/adapter"
)

func TestAPIError(t *testing.T) {
	for text, want := range map[string]bool{
		`API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}`: true,
		"[API Error: no model]":                          true,
		" API Error (Request timed out.)\n":              true,
		`Error: 400 {"error":{"message":"bad request"}}`: true,
		"Error: 503 Service Unavailable":                 true,
		"Error 429: too many requests":                   true,
		"":                                               false,
		"I fixed the API Error: 400":                     false,
		"Error: 42 tests fail":                           false,
		"Error: 4000 lines are too long":                 false,
		"API Errors are handled now":                     false,
		"Error: 400 is sent for a wrong name.\n\nI changed the test.": false,
	} {
		if got := adapter.APIError(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
