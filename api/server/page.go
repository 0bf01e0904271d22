package server

import (
	"net/http"
	"strconv"
)

// The two pages for browsers without the token. They have no script and no style, and contain
// nothing from the request.

// A link from another site does not send the cookie, but a click on this page does. The page
// therefore has a link to Mission Control for browsers that already have the cookie.
const pageNoLink = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Fairlead</title>
<h1>Fairlead runs here</h1>
<p>Open the link that <code>fairlead up</code> printed; it has the token that this browser needs.
Or run <code>fairlead open</code> in the repository, which opens the link for you.</p>
<p>If you have opened the link in this browser before, <a href="/">continue to Mission Control</a>.</p>
</html>
`

const pageOldLink = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Fairlead</title>
<h1>This link is no longer valid</h1>
<p>Its token does not belong to the daemon that runs here. Open the link that <code>fairlead up</code>
printed last, or run <code>fairlead open</code> in the repository, which opens the link for you.</p>
</html>
`

func writePage(w http.ResponseWriter, status int, page string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(page)))
	w.WriteHeader(status)
	w.Write([]byte(page))
}
