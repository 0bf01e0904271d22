//go:build race

package driver

// Adapters are this program, too, so the options of the race detector are for them as well.
func init() { inherited = append(inherited, "GORACE") }
