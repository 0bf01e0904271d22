package driver

import (
	"strings"
	"testing"
)

func TestKeyRefused(t *testing.T) {
	for words, want := range map[string]bool{
		"Invalid API key · Please run /login":                                     true,
		`API Error: 401 {"type":"error","error":{"type":"authentication_error"}}`: true,
		"[API Error: 401 Incorrect API key provided: sk-x.]":                      true,
		"unexpected status 401 Unauthorized: missing bearer":                      true,
		"AI_APICallError: Forbidden (status code 403)":                            true,
		"OAuth token has expired. Please obtain a new token":                      true,
		"OPENAI_API_KEY environment variable is not set":                          true,
		"please set GEMINI_API_KEY and try again":                                 true,
		"Error: missing environment variable ANTHROPIC_API_KEY":                   true,
		"the test needs API_KEY_FORMAT":                                           false,
		"you are not logged in":                                                   true,
		"exceeded retry limit, last status: 429 Too Many Requests":                false,
		"API Error: 500 internal":                                                 false,
		"the program ended with exit code 1":                                      false,
		"stream disconnected before completion after 401 s":                       false,
		"context window exceeded":                                                 false,
		"":                                                                        false,
	} {
		if got := KeyRefused(0, words); got != want {
			t.Errorf("%q: %t", words, got)
		}
	}
	for status, want := range map[int]bool{401: true, 403: true, 429: false, 500: false, 0: false} {
		if KeyRefused(status, "it failed") != want {
			t.Errorf("the result for status %d is wrong", status)
		}
	}
}

func TestSignIn(t *testing.T) {
	for _, c := range []struct {
		kind    string
		command []string
		want    string
	}{
		{"claude", nil, "/login"},
		{"acp", []string{"/opt/bin/opencode", "acp"}, "opencode auth login"},
		{"acp", []string{"other"}, "once by hand"},
		{"acp", []string{"other"}, `env: {NAME: "${NAME}"}`},
	} {
		if got := SignIn(c.kind, c.command); !strings.Contains(got, c.want) {
			t.Errorf("%v: %s", c, got)
		}
	}
}
