package config_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/process/driver/script"
)

// TestStarterPlays checks that the script driver accepts the script that init writes.
func TestStarterPlays(t *testing.T) {
	program, err := script.Parse(string(config.StarterScript), config.Starter(config.StarterScript))
	if err != nil {
		t.Fatal(err)
	}
	if len(program.Sessions) < 2 || len(program.Cleanup) == 0 {
		t.Errorf("%d sessions, %d steps of cleanup: too little to show", len(program.Sessions), len(program.Cleanup))
	}
}
