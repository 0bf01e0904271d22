package cli

// WatchLast is how many entries of a conversation are shown at the start.
const WatchLast = 50
