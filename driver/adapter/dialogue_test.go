package adapter_test

import (
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/driver/adapter"
	"github.com/fairlead-dev/fairlead/driver/drivertest"
)

func TestDialogues(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "dialogues", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no dialogues: %v", err)
	}
	for _, file := range files {
		drivertest.Dialogue(t, plain{}, adapter.Part{}, file)
	}
}
