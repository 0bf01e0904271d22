package codex

import (
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
)

func TestProviderErrors(t *testing.T) { drivertest.ProviderErrors(t, providerErrors) }
