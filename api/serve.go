package api

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
	headerWait  = 5 * time.Second  // for the headers of a request
	requestWait = 15 * time.Second // for a whole request; routes with a body wait less
	answerWait  = 60 * time.Second // for an answer to be taken; streams have limits of their own
	idleWait    = 2 * time.Minute  // between two requests on one connection
	headerBytes = 64 << 10         // of all headers of a request together
	goodbyeWait = 5 * time.Second  // for answers that are under way when the daemon goes
)

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
		Handler: h, ReadHeaderTimeout: headerWait, ReadTimeout: requestWait, WriteTimeout: answerWait, IdleTimeout: idleWait,
		MaxHeaderBytes: headerBytes, ConnContext: withCaller, DisableGeneralOptionsHandler: true,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // what strangers do to the port is not our failure
	}
}
