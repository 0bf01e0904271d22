package drivertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/driver/adapter"
)

// ProviderErrors checks a driver's table of provider errors: each row matches its sample in testdata/provider_errors, the sample is
// a failure, and beside usage or a tool call, or quoted by other words, it is an ordinary answer. An object with a typed error needs no
// row of its own and is a failure without work wherever it stands.
func ProviderErrors(t *testing.T, table adapter.ProviderErrors) {
	t.Helper()
	if len(table) == 0 {
		t.Fatal("the table is empty")
	}
	for _, row := range table {
		text, err := os.ReadFile(filepath.Join("testdata/provider_errors", row.Sample))
		if err != nil {
			t.Errorf("a row without a sample: %v", err)
			continue
		}
		if got := (adapter.ProviderErrors{row}).Find(string(text)); got != row.Code || got == "" {
			t.Errorf("%s: %q, want %q", row.Sample, got, row.Code)
		}
		a := adapter.Answers{Table: table}
		if a.Say(string(text)); a.Failure() == nil {
			t.Errorf("%s is taken for an answer", row.Sample)
		}
		if a.Work(); a.Failure() != nil {
			t.Errorf("%s beside work is no answer", row.Sample)
		}
		quotes := adapter.Answers{Table: table}
		if quotes.Say("The log has this line:\n" + string(text)); quotes.Failure() != nil && !strings.Contains(string(text), `{"error"`) {
			t.Errorf("an answer that quotes %s is no answer", row.Sample)
		}
	}
}
