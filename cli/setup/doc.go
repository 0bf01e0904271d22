// Package setup writes a first fairlead.yaml, and installs the hooks of Claude Code.
//
// Its promise: a file that exists is not changed without need, and what was added can be removed.
// The flags of the commands are in cmd/fairlead; what all commands share is in package cli.
package setup
