package view

import "time"

// SearchResult is one passage that has all words of a search.
type SearchResult struct {
	Kind    string    `json:"kind" enum:"output,channel,crew,question,run,task,dispatch,history" doc:"Where it was found: an agent's output, a message in a channel, words in a lead session, a question of an agent, a run, a task, a dispatch, or the history of an agent or of the team"`
	Entity  string    `json:"entity" doc:"The session, the channel, the speaker, the question, the run, the task, the dispatch, or the agent"`
	Part    string    `json:"part,omitempty" doc:"The step of a run; request-N, comment-N or findings of a task; the conversation of a dispatch"`
	Agent   string    `json:"agent,omitempty" doc:"The agent concerned"`
	At      time.Time `json:"at" doc:"When; of output, estimated from the reports before and after it"`
	Seq     uint64    `json:"seq,omitempty" doc:"The change in the journal; not of output and files of tasks"`
	Offset  *int64    `json:"offset,omitempty" doc:"Of output: the byte at which the line with the first match begins"`
	Snippet string    `json:"snippet" doc:"A part of the text, in one line. It is text, never markup"`
	Matches [][2]int  `json:"matches" doc:"The matches in the snippet: the first character and the one after the last, counted in Unicode characters from 0"`
	Link    string    `json:"link" doc:"Opens the page at this place, as in #/agents/coder/output/coder-17/1234"`
}

// SearchPage is the answer to a search.
type SearchPage struct {
	Results []SearchResult `json:"results" doc:"The newest first"`
	Next    int64          `json:"next" doc:"Hand it back as before for the next page; 0: this was the last one"`
	Stopped string         `json:"stopped" doc:"Why the search ended before it had read everything; empty: it did not"`
	TookMS  float64        `json:"took_ms"`
	Index   SearchIndex    `json:"index"`
}

// SearchIndex says how far the index is.
type SearchIndex struct {
	Seq        uint64     `json:"seq" doc:"The last change of the journal in the index"`
	Behind     uint64     `json:"behind" doc:"Changes of the journal that are not in it yet: more than a few while it is built"`
	AsOf       *time.Time `json:"as_of" doc:"The time of that change; null: there is none"`
	Dropped    int64      `json:"dropped" doc:"Passages that were dropped because the index reached its limit of 4 GiB"`
	DroppedAt  *time.Time `json:"dropped_until" doc:"Older passages than this may be missing; null: none were dropped"`
	BytesLimit int64      `json:"bytes_max"`
}
