package journal

// Limits of a page of what was said, which is read from the journal.
const (
	PageDefault = 100 // entries
	PageMax     = 500 // entries

	RecentFew  = 512  // changes that usually hold a page; they are searched first
	RecentMax  = 4096 // newest changes that are searched before the whole journal: a conversation that was interrupted is recent
	ReadGapMax = 64   // unrelated changes between two wanted ones; across larger gaps, reading each alone is faster
)
