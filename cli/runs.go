package cli

// RemarkWidth is the maximum length of a reason in a table.
const RemarkWidth = 80
