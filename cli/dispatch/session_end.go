package dispatch

// LoggedMost is the maximum size of a conversation's JSON in bytes.
const LoggedMost = 1 << 20
