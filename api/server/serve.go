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
	goodbyeWait = 5 * time.Second // for answers in progress when the daemon stops
)

// waits are the time limits for the client's part of a request, and for a poll.
type waits struct {
	headers time.Duration // to send the headers of a request
	request time.Duration // to send a whole request
	body    time.Duration // to send its body, once the headers are there
	answer  time.Duration // to read an answer
	piece   time.Duration // to read a piece of a stream
	poll    time.Duration // until a poll is answered without news; shorter than proxies wait for an answer
}

// waitsUsual are longer than a program needs on a machine that is very busy: a browser opens connections
// before it has requests for them, and loses a part of the page if one is closed too early. They are
// short enough that an idle or malicious client does not keep a connection.
var waitsUsual = waits{
	headers: 30 * time.Second, request: 60 * time.Second, body: 30 * time.Second, answer: 60 * time.Second, piece: 10 * time.Second,
	poll: 10 * time.Second,
}

// Serve answers on all listeners until ctx ends; then it ends the streams with a goodbye, lets other requests finish, and closes
// the listeners. A nil listener is ignored. It returns nil after ctx has ended, otherwise the failure of a listener.
func (s *Server) Serve(ctx context.Context, tcp net.Listener, sockets ...net.Listener) error {
	servers, fault := []*http.Server(nil), make(chan error, 1+len(sockets))
	begin := func(l net.Listener, h http.Handler) {
		if l == nil {
			return
		}
		srv := s.server(h)
		servers = append(servers, srv)
		limited := &bounded{Listener: l, max: int64(s.room)}
		go func() { fault <- srv.Serve(limited) }()
	}
	begin(tcp, s.Handler())
	for _, socket := range sockets {
		begin(socket, s.SocketHandler())
	}

	var err error
	ended := 0
	select {
	case <-ctx.Done():
	case err = <-fault:
		ended++
		err = fmt.Errorf("serve the API: %w", err)
	}
	_ = s.Close() // it never fails
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeWait)
	defer cancel()
	for _, srv := range servers {
		if srv.Shutdown(wait) != nil {
			_ = srv.Close() // requests that have not finished by now are cut off
		}
	}
	for ; ended < len(servers); ended++ {
		if e := <-fault; err == nil && !errors.Is(e, http.ErrServerClosed) {
			err = fmt.Errorf("serve the API: %w", e)
		}
	}
	return err
}

// server returns an HTTP server with all limits set.
func (s *Server) server(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: s.waits.headers, ReadTimeout: s.waits.request, WriteTimeout: s.waits.answer, IdleTimeout: idleWait,
		MaxHeaderBytes: headerBytes, ConnContext: s.withCaller, DisableGeneralOptionsHandler: true,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // faults of unknown clients are not faults of the server
	}
}
