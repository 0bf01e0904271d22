package cli

// SummaryWidth is the maximum length of a task in a line.
const SummaryWidth = 80
