package fairlead_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// The race detector finds nothing in texts and trees, and makes minutes of these tests.
func TestMain(m *testing.M) {
	if testsize.Race {
		fmt.Println("left out under the race detector; .ci/run lint runs these tests without it")
		return
	}
	os.Exit(m.Run())
}
