package seam

// Sessions is where session folders lie (seed 002), and who sees that something moves there.
// WatchSessions is the real one.
type Sessions interface {
	// News has something in it where a folder may have changed, come or gone.
	News() <-chan struct{}
	// Paths are the folders that are there, the newest first. Links are left out.
	Paths() ([]string, error)
	// Watch says whose history is followed from now on; who is not named is not.
	Watch(paths []string)
}
