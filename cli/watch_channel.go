package cli

import (
	"errors"
	"net/http"

	"github.com/fairlead-dev/fairlead/api"
)

// Unknown reports that there is nothing with that name, or that the daemon is of a version without
// channels.
func Unknown(err error) bool {
	var problem *api.Problem
	return errors.As(err, &problem) && (problem.Status == http.StatusNotFound || problem.Status == http.StatusNotImplemented)
}
