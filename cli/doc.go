// Package cli is what the commands of fairlead share: the streams and the workspace that a command
// works with, printing for people and programs, exit codes, and the connection to the daemon.
//
// The packages below it are the flows and the printing of one noun each; the flags of commands are
// in cmd/fairlead.
//
// The one promise: text of others is printed without control characters, JSON is one value per line,
// and each error has its exit code.
package cli
