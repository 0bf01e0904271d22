package cli

import (
	"time"
)

// FileWait is how long a verb waits for agent_state.json to say what the journal does. It
// takes a millisecond; longer is a full disk or the like, which `fairlead why` tells.
const FileWait = 5 * time.Second
