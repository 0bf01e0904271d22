package cli

// RemarkWidth is what of a reason stands in a table.
const RemarkWidth = 80
