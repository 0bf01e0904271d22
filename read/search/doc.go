// Package search finds words in everything that was said, done, asked and changed.
//
// The index is only a cache. It holds nothing that the journal and the spools do not hold; losing it
// costs the time to build it again.
//
// # The file
//
// The index is one SQLite file with an FTS5 table. A passage is some text of one place (a session,
// a channel, a run, a task, a question, an agent's history): a message, or up to about 2 KiB of
// consecutive lines. The text is stored compressed. The FTS5 table is contentless and stores only
// which words are in which passage (detail=none), not where: the places are found by reading the
// text of the few passages that are shown. That keeps the index small.
//
// A file of another version, or a damaged one, is deleted and begun anew. Positions are stored in
// the same transaction as the passages: the last change of the journal, with its hash, and for each
// session the number of bytes read.
//
// # Words
//
// [Index] splits texts itself; FTS5 gets a list of words that need no further work. A word is a run
// of letters and digits. It is folded: no difference of case, width, or Latin, Greek and Cyrillic
// accents. For each two words that follow each other the index has a code, one of 65,536: passages in which the words of
// a phrase do not follow each other are then hardly read. The parts of retryUpload are found as well as the whole. Chinese, Japanese,
// Korean, Thai and other scripts that are written without spaces, or with suffixes, are stored as single
// characters and as pairs, so any part of a sentence is found.
//
// # Queries
//
// A query is plain words, which must all occur in one passage, and "quoted phrases". There is no
// other syntax, and no query is an error except one without a letter or digit, or one that is too
// long. A word of three characters or more also finds longer words that begin with it; a shorter one
// finds only itself.
//
// The one promise: a search finds every passage that contains all words of the query, newest first.
package search
