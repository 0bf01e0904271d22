package view

import (
	"net/url"
)

// PageLink is the part of an address that opens a place in Mission Control, such as #/runs/nightly/build. Empty words are
// left out.
func PageLink(words ...string) string {
	link := "#"
	for _, word := range words {
		if word != "" {
			link += "/" + url.PathEscape(word)
		}
	}
	return link
}
