// Package setup writes a first fairlead.yaml, and installs the hooks of Claude Code.
// The flags of the commands are in cmd/fairlead; what all commands share is in package cli.
//
// The one promise: a file that exists is not changed without need, and what was added can be removed.
package setup
