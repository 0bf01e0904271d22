package acp

import (
	_ "embed"

	"github.com/fairlead-dev/fairlead/process/driver/adapter"
)

//go:embed provider_errors.json
var providerErrorsText []byte

// providerErrors is what programs say about errors of their provider. The protocol has no code for them.
var providerErrors = adapter.ReadProviderErrors(providerErrorsText)
