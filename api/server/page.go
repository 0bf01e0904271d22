package server

import (
	"net/http"
	"strconv"
)

// The two pages that are shown to who has no token. They have no script and no style of
// their own, and nothing that came with the request is in them.

// A link from another site brings no cookie with it, the click on this page does: hence
// the way back to where the reader already is.
const pageStranger = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Fairlead</title>
<h1>Fairlead runs here</h1>
<p>Open the link that <code>fairlead up</code> printed; it has the token that lets this browser in.
Or type <code>fairlead open</code> in the repository, which opens it for you.</p>
<p>If this browser was let in before, <a href="/">go on to Mission Control</a>.</p>
</html>
`

const pageOld = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Fairlead</title>
<h1>This link is of another day</h1>
<p>Its token is not the one of the daemon that runs here. Open the link that <code>fairlead up</code>
printed last, or type <code>fairlead open</code> in the repository, which opens it for you.</p>
</html>
`

func writePage(w http.ResponseWriter, status int, page string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(page)))
	w.WriteHeader(status)
	w.Write([]byte(page))
}
