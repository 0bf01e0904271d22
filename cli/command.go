package cli

import (
	"time"
)

// FileWait is how long a command waits until agent_state.json matches the journal. It normally takes
// a millisecond; a longer time points to a problem such as a full disk, which `fairlead why`
// reports.
const FileWait = 5 * time.Second
