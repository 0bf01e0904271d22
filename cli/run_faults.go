package cli

import (
	"errors"
	"net/http"
	"strings"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/runfile"
)

// Faulty gives the error for an invalid workflow its exit code, and prints each fault on its own
// line, whether the file was read here or by a daemon.
func Faulty(err error) error {
	var here *runfile.FileFaults
	if errors.As(err, &here) {
		return &Coded{Code: ExitUsage, Err: err}
	}
	var p *api.Problem
	if !errors.As(err, &p) || p.Status != http.StatusUnprocessableEntity {
		return err
	}
	if len(p.Errors) == 0 {
		return &Coded{Code: ExitUsage, Err: err}
	}
	var lines []string
	for _, fault := range p.Errors {
		text := fault.Message
		if fault.Location != "" {
			text = fault.Location + ": " + text
		}
		lines = append(lines, text)
	}
	return &Coded{Code: ExitUsage, Err: errors.New(strings.Join(lines, "\n"))}
}
