package seam

// Sessions finds dispatch folders (seed 002) and watches them. WatchSessions is the production
// implementation.
type Sessions interface {
	// News receives a value when a folder may have changed, appeared or disappeared.
	News() <-chan struct{}
	// Paths lists the folders, the newest first, without symbolic links.
	Paths() ([]string, error)
	// Watch sets the folders whose history is watched; all others are no longer watched.
	Watch(paths []string)
}
