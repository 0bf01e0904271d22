package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fairlead-dev/fairlead/driver/script"
	"github.com/fairlead-dev/fairlead/holder"
)

// The test binary is all programs at once: fairlead itself, the holder, the scripted agent.
func TestMain(m *testing.M) {
	holder.Intercept()
	script.Intercept()
	if os.Getenv("FAIRLEAD_TEST_MAIN") == "1" {
		os.Unsetenv("FAIRLEAD_TEST_MAIN") // agents must not inherit it
		os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	testscript.Main(m, map[string]func(){
		"fairlead": func() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}
