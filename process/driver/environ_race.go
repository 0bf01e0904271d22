//go:build race

package driver

// Adapters run in this program's binary, so they need the options of the race detector, too.
func init() { inherited = append(inherited, "GORACE") }
