package dispatch

// LoggedMost is as much as the JSON of a conversation may be.
const LoggedMost = 1 << 20
