package mcp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/fairlead-dev/fairlead/controller/tools"
)

const (
	mcpKeyBytes   = 32
	mcpTokenMax   = 1024                     // two names of a team, and what proves them
	mcpTokenAbout = "fairlead mcp token 1\n" //nolint:gosec // what a proof is about; the secret is the key
)

// Key makes and knows the tokens of agents. It is a secret.
type Key [mcpKeyBytes]byte

// ReadKey gives the key that a workspace keeps at path, and makes it where there is none. One that
// others could have read, or that came with somebody's repository, is none: it is made anew, and the
// tokens that were made with it are void.
func ReadKey(path string) (key Key, err error) {
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 == 0 {
		if text, err := os.ReadFile(path); err == nil {
			if b, err := base64.RawURLEncoding.DecodeString(strings.TrimSpace(string(text))); err == nil && len(b) == mcpKeyBytes {
				copy(key[:], b)
				return key, nil
			}
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return key, fmt.Errorf("take away a key that is none: %w", err)
	}
	_, _ = rand.Read(key[:]) // it does not fail
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return key, fmt.Errorf("keep the key of the agents' tokens: %w", err)
	}
	_, err = file.WriteString(base64.RawURLEncoding.EncodeToString(key[:]) + "\n")
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return key, fmt.Errorf("keep the key of the agents' tokens: %w", err)
	}
	return key, nil
}

// Token is what an agent shows in one of its sessions: agent.session.proof. A dot or a percent sign in
// a name is written %2E, %25.
func (k Key) Token(agent, session string) string {
	names := tokenName(agent) + "." + tokenName(session)
	return names + "." + base64.RawURLEncoding.EncodeToString(k.proof(names))
}

func (k Key) proof(names string) []byte {
	mac := hmac.New(sha256.New, k[:])
	mac.Write([]byte(mcpTokenAbout + names)) // it does not fail
	return mac.Sum(nil)
}

// errNoToken says that something is no token of ours, and not why: whoever guesses learns nothing.
var errNoToken = errors.New("this is no token of this fairlead; an agent finds its own in FAIRLEAD_MCP_TOKEN")

// Who is whom a token names. Whether the session is open it does not say. How
// much of a proof was right, the time that this takes does not tell.
func (k Key) Who(token string) (tools.AgentCaller, error) {
	if len(token) > mcpTokenMax {
		return tools.AgentCaller{}, errNoToken
	}
	cut := strings.LastIndexByte(token, '.')
	if cut < 0 {
		return tools.AgentCaller{}, errNoToken
	}
	// The text is compared and not what it stands for: a token has one spelling.
	if !hmac.Equal([]byte(token[cut+1:]), []byte(base64.RawURLEncoding.EncodeToString(k.proof(token[:cut])))) {
		return tools.AgentCaller{}, errNoToken
	}
	agent, session, ok := strings.Cut(token[:cut], ".")
	if !ok {
		return tools.AgentCaller{}, errNoToken
	}
	return tools.AgentCaller{Agent: plainName(agent), Session: plainName(session)}, nil
}

var (
	tokenNames = strings.NewReplacer("%", "%25", ".", "%2E")
	plainNames = strings.NewReplacer("%25", "%", "%2E", ".")
)

func tokenName(name string) string { return tokenNames.Replace(name) }
func plainName(name string) string { return plainNames.Replace(name) }
