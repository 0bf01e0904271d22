package remote

import (
	"context"
	"net/http"
)

// Dial waits for the connection of a host, and returns what sends requests on it and the beginning of their addresses. It
// fails when ctx ends, or if the host cannot come back.
type Dial func(ctx context.Context) (client *http.Client, base string, err error)
