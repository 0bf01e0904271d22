package runs

import (
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/controller/sessions"
)

// DeniedIn finds the denied requests that are recorded in a step's logs, or empty. They are last,
// after the agent's own output.
func DeniedIn(logs []string) string {
	var found []string
	for _, line := range logs[max(0, len(logs)-2):] {
		n, _, many := strings.Cut(line, sessions.SomeDenied)
		if _, err := strconv.Atoi(n); many && err == nil || strings.HasPrefix(line, sessions.OneDenied) || strings.HasPrefix(line, sessions.NotAsked) {
			found = append(found, line)
		}
	}
	return sessions.Joined(found...)
}
