package mcp

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/fairlead-dev/fairlead/work/sessions"
	"github.com/fairlead-dev/fairlead/work/tools"
)

const (
	tokenBytes = 32   // of the secret
	tokenMax   = 1024 // two names of a team and the secret
)

// NewToken returns a token for one session of an agent: agent.session.secret. A dot or a percent sign
// in a name is written %2E or %25. The secret is random and stored nowhere; the journal has the token's
// hash.
func NewToken(agent, session string) string {
	secret := make([]byte, tokenBytes)
	_, _ = rand.Read(secret) // it never fails
	return tokenNames.Replace(agent) + "." + tokenNames.Replace(session) + "." + base64.RawURLEncoding.EncodeToString(secret)
}

// errNoToken says that a token is invalid. It gives no reason, so that guessing reveals nothing.
var errNoToken = errors.New("this is not a valid token of this fairlead daemon; an agent's token is in FAIRLEAD_MCP_TOKEN")

// callerOf returns what a token says. Whether it is the token of an open session, the engine checks.
func callerOf(token string) (tools.AgentCaller, error) {
	parts := strings.Split(token, ".")
	if len(token) > tokenMax || len(parts) != 3 {
		return tools.AgentCaller{}, errNoToken
	}
	return tools.AgentCaller{
		Agent: plainNames.Replace(parts[0]), Session: plainNames.Replace(parts[1]),
		TokenHash: sessions.HashOfToken(token),
	}, nil
}

var (
	tokenNames = strings.NewReplacer("%", "%25", ".", "%2E")
	plainNames = strings.NewReplacer("%25", "%", "%2E", ".")
)
