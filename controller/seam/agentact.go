package seam

// ServerName is the name under which agent programs see Fairlead's tools:
// mcp__fairlead__turn_complete.
const ServerName = "fairlead"
