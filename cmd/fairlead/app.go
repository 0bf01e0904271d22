package main

import (
	"github.com/fairlead-dev/fairlead/cli"
)

// app is what every command has: the shared part, and the commands as its methods.
type app struct{ *cli.App }
