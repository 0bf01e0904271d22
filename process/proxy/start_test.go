package proxy

import (
	"fmt"
	"os"
)

const callerVar = "FAIRLEAD_TEST_CALLER"

func callAs(string) int { fmt.Fprintln(os.Stderr); return 1 }
