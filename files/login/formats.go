package login

import "time"

// group is an object of a login file that a refresh changes. All names are paths from it, with dots.
type group struct {
	at     string        // keys from the top; * is every key; empty: the file's own object
	tokens []string      // strings that a refresh writes; those that the person has are all there
	may    []string      // strings and numbers that it may leave out
	expiry string        // a number, since 1970; empty: the first token is a JWT, which says so itself
	unit   time.Duration // of expiry
	same   []string      // whose login it is, and where it is sent: a difference refuses the group
	quiet  []string      // what programs also write, which stays the person's own without a word
}

// formats are the login files of each program, as their sources say.
var formats = map[string]map[string][]group{
	// Claude Code refuses a link, writes in place where a rename is refused, and reads the file again when its time has changed
	// (agent-of-empires 3834, yak 11). A refresh also writes the plan.
	"claude": {".credentials.json": {
		{
			at: "claudeAiOauth", tokens: []string{"accessToken", "refreshToken"}, may: []string{"refreshTokenExpiresAt"},
			expiry: "expiresAt", unit: time.Millisecond, quiet: []string{"scopes", "subscriptionType", "rateLimitTier"},
		},
		{
			at: "mcpOAuth.*", tokens: []string{"accessToken", "refreshToken"}, expiry: "expiresAt", unit: time.Millisecond,
			same: []string{"serverName", "serverUrl", "clientId"}, quiet: []string{"scope"},
		},
	}},
	// Codex truncates its file and writes it (codex-rs/login/src/auth/storage.rs); a removed .credentials.json has no login.
	"codex": {
		"auth.json": {{
			tokens: []string{"tokens.access_token", "tokens.refresh_token"}, may: []string{"tokens.id_token", "last_refresh"},
			same: []string{"auth_mode", "OPENAI_API_KEY", "tokens.account_id"},
		}},
		".credentials.json": {{
			at: "*", tokens: []string{"access_token", "refresh_token"}, expiry: "expires_at", unit: time.Millisecond,
			same: []string{"server_name", "server_url", "client_id"}, quiet: []string{"scopes"},
		}},
	},
	// OpenCode writes in place (packages/opencode/src/auth/index.ts and mcp/auth.ts). A provider with a key has no tokens.
	"opencode": {
		"auth.json": {{
			at: "*", tokens: []string{"access", "refresh"}, expiry: "expires", unit: time.Millisecond,
			same: []string{"type", "accountId", "enterpriseUrl"},
		}},
		"mcp-auth.json": {{
			at: "*", tokens: []string{"tokens.accessToken", "tokens.refreshToken"}, expiry: "tokens.expiresAt", unit: time.Second,
			same: []string{"serverUrl", "clientInfo.clientId"}, quiet: []string{"tokens.scope", "codeVerifier", "oauthState"},
		}},
	},
	// Gemini renames, and writes in place where that is refused (packages/core/src/code_assist/oauth2.ts); older versions write in place.
	"gemini": {"oauth_creds.json": {{
		tokens: []string{"access_token", "refresh_token"}, may: []string{"id_token"}, expiry: "expiry_date", unit: time.Millisecond,
		same: []string{"token_type"}, quiet: []string{"scope"},
	}}},
	// Qwen Code renames, and fails where that is refused; oauth_creds.lock beside the file keeps two from refreshing at once
	// (packages/core/src/qwen/sharedTokenManager.ts, utils/atomicFileWrite.ts). Prompts go to resource_url.
	"qwen": {"oauth_creds.json": {{
		tokens: []string{"access_token", "refresh_token"}, expiry: "expiry_date", unit: time.Millisecond,
		same: []string{"token_type", "resource_url"},
	}}},
	// Cursor's program is closed: both tokens are JWTs, and how it writes is not known.
	"cursor-agent": {"auth.json": {{tokens: []string{"accessToken", "refreshToken"}}}},
}

// Files are the names of the login files of a program; none: it has no login that is refreshed.
func Files(program string) map[string]bool {
	names := map[string]bool{}
	for name := range formats[program] {
		names[name] = true
	}
	return names
}
