package cli

import (
	"errors"
	"net/http"

	"github.com/fairlead-dev/fairlead/api"
)

// Unknown says that there is nothing of that name, or that the daemon is of a version which
// has no channels at all.
func Unknown(err error) bool {
	var problem *api.Problem
	return errors.As(err, &problem) && (problem.Status == http.StatusNotFound || problem.Status == http.StatusNotImplemented)
}
