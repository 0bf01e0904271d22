package driver

import (
	"path/filepath"

	"github.com/fairlead-dev/fairlead/internal/lazy"
)

// keyWords matches error messages about missing or invalid credentials. Only failures are searched,
// never the words of a model.
var keyWords = lazy.Regexp(`(?i)(invalid|incorrect|missing|expired|revoked|unknown|no) (x-)?api[ _-]?key|invalid[ _]authentication|authentication[ _](error|failed|required)|` +
	`[a-z0-9]+_(api_key|auth_token)\b.{0,60}(not set|missing|required|must be set|unset|undefined|empty)|(set|missing|provide|required|need)\b.{0,60}[a-z0-9]+_api_key\b|` +
	`invalid (bearer|access|auth) token|oauth token (has )?expired|not (logged|signed) in|please (log|sign) in|run /login|` +
	`(status|error|http|code)\W{0,4}(code\W{0,4})?40[13]\b|\b401\b.{0,20}unauthori[sz]ed|\b403\b.{0,20}forbidden`)

// KeyRefused reports whether a failure means that the provider rejects the credentials, by its HTTP
// status (0: unknown) or its text. Retrying does not help: a person has to sign in.
func KeyRefused(status int, words string) bool {
	return status == 401 || status == 403 || keyWords().MatchString(words)
}

// signIns says how to sign in, by the program's file name.
var signIns = map[string]string{
	"claude":   "run `claude` once by hand and say /login, or put ANTHROPIC_API_KEY into its `env`",
	"codex":    "run `codex login`, or put CODEX_API_KEY into its `env`",
	"opencode": "run `opencode auth login`, or put its provider's key into its `env`",
	"gemini":   "run `gemini` once by hand, or put GEMINI_API_KEY into its `env`",
	"qwen":     "run `qwen` once by hand, or put OPENAI_API_KEY into its `env`",
}

// SignIn returns instructions for signing in to an agent's program, for errors about rejected
// credentials.
func SignIn(kind string, command []string) string {
	program := kind
	if len(command) > 0 {
		program = filepath.Base(command[0])
	}
	if words, known := signIns[program]; known {
		return words
	}
	return "start the program once by hand and sign in, or put its provider's key into its `env`, which is the only way in which it gets one: `env: {NAME: \"${NAME}\"}`"
}
