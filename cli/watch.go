package cli

// WatchLast is how much of a conversation is shown to whoever begins to watch it.
const WatchLast = 50
