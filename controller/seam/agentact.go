package seam

// ServerName is how our tools are introduced to a program: mcp__fairlead__turn_complete.
const ServerName = "fairlead"
