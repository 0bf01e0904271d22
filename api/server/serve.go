package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	idleWait    = 2 * time.Minute // between two requests on one connection
	headerBytes = 64 << 10        // of all headers of a request together
	goodbyeWait = 5 * time.Second // for answers that are under way when the daemon goes
)

// waits are how long whoever asks may take for his part.
type waits struct {
	headers time.Duration // to send the headers of a request
	request time.Duration // to send a whole request
	body    time.Duration // to send its body, once the headers are there
	answer  time.Duration // to take an answer
	piece   time.Duration // to take a piece of a stream
}

// waitsUsual are far more than a program on this machine needs, and short enough that who
// has gone to sleep, or means no good, keeps no place for long.
var waitsUsual = waits{
	headers: 5 * time.Second, request: 15 * time.Second, body: 5 * time.Second, answer: 60 * time.Second, piece: 10 * time.Second,
}

// Serve answers on both listeners until ctx ends; then it tells the watchers goodbye, lets
// requests that are under way finish, and closes the listeners. A nil listener is left out.
// It returns nil after ctx ended, and a failure of a listener else.
func (s *Server) Serve(ctx context.Context, tcp, socket net.Listener) error {
	var servers []*http.Server
	fault := make(chan error, 2)
	begin := func(l net.Listener, h http.Handler) {
		if l == nil {
			return
		}
		srv := s.server(h)
		servers = append(servers, srv)
		door := &bounded{Listener: l, max: int64(s.room)}
		go func() { fault <- srv.Serve(door) }()
	}
	begin(tcp, s.Handler())
	begin(socket, s.SocketHandler())

	var err error
	ended := 0
	select {
	case <-ctx.Done():
	case err = <-fault:
		ended++
		err = fmt.Errorf("serve the API: %w", err)
	}
	_ = s.Close() // it cannot fail
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeWait)
	defer cancel()
	for _, srv := range servers {
		if srv.Shutdown(wait) != nil {
			_ = srv.Close() // who has not finished by now is not waited for
		}
	}
	for ; ended < len(servers); ended++ {
		if e := <-fault; err == nil && !errors.Is(e, http.ErrServerClosed) {
			err = fmt.Errorf("serve the API: %w", e)
		}
	}
	return err
}

// server is an HTTP server with all of its limits.
func (s *Server) server(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: s.waits.headers, ReadTimeout: s.waits.request, WriteTimeout: s.waits.answer, IdleTimeout: idleWait,
		MaxHeaderBytes: headerBytes, ConnContext: s.withCaller, DisableGeneralOptionsHandler: true,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // what strangers do to the port is not our failure
	}
}
