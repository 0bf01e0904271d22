// Package search asks for a search and prints what was found.
// The flags of the command are in cmd/fairlead; what all commands share is in package cli.
//
// The one promise: every match is marked, and each result says where it is and which address opens it.
package search
