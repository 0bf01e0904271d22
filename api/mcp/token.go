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
	mcpTokenMax   = 1024                     // two names of a team and the proof
	mcpTokenAbout = "fairlead mcp token 1\n" //nolint:gosec // what the proof covers; the secret is the key
)

// Key makes and checks the tokens of agents. It is a secret.
type Key [mcpKeyBytes]byte

// ReadKey reads the key of a workspace at path, and makes it if there is none. A key file that
// others could have read, or that came with a cloned repository, is replaced; tokens of the old key
// are invalid then.
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
		return key, fmt.Errorf("remove an invalid key: %w", err)
	}
	_, _ = rand.Read(key[:]) // it never fails
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return key, fmt.Errorf("store the key of the agents' tokens: %w", err)
	}
	_, err = file.WriteString(base64.RawURLEncoding.EncodeToString(key[:]) + "\n")
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return key, fmt.Errorf("store the key of the agents' tokens: %w", err)
	}
	return key, nil
}

// Token returns an agent's token for one of its sessions: agent.session.proof. A dot or a percent
// sign in a name is written %2E or %25.
func (k Key) Token(agent, session string) string {
	names := tokenName(agent) + "." + tokenName(session)
	return names + "." + base64.RawURLEncoding.EncodeToString(k.proof(names))
}

func (k Key) proof(names string) []byte {
	mac := hmac.New(sha256.New, k[:])
	mac.Write([]byte(mcpTokenAbout + names)) // it never fails
	return mac.Sum(nil)
}

// errNoToken says that a token is invalid. It gives no reason, so that guessing reveals nothing.
var errNoToken = errors.New("this is not a valid token of this fairlead daemon; an agent's token is in FAIRLEAD_MCP_TOKEN")

// Who returns the agent and session of a token. It does not check whether the session is open. The
// proof is compared in constant time.
func (k Key) Who(token string) (tools.AgentCaller, error) {
	if len(token) > mcpTokenMax {
		return tools.AgentCaller{}, errNoToken
	}
	cut := strings.LastIndexByte(token, '.')
	if cut < 0 {
		return tools.AgentCaller{}, errNoToken
	}
	// Compare the text, not the decoded bytes: a token has exactly one spelling.
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
