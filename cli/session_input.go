package cli

// SummaryWidth is a task in a line.
const SummaryWidth = 80
