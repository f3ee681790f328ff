package testkit

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// Fault answers one request in place of the server behind it, to which forward
// leads.
type Fault = func(w http.ResponseWriter, r *http.Request, forward http.Handler)

// FaultProxy stands between a client and a server and makes bad days: it cuts,
// delays, and answers what the server never would. Without a fault to make it
// passes everything on.
type FaultProxy struct {
	URL string

	mutex    sync.Mutex
	planned  []plannedFault
	requests []string
}

type plannedFault struct {
	method, part string
	fault        Fault
}

// Faults starts a proxy in front of a server. It ends with the test.
func Faults(t testing.TB, server string) *FaultProxy {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = target.Host
	}}
	proxy := &FaultProxy{}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fault := proxy.take(r); fault != nil {
			fault(w, r, forward)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	proxy.URL = front.URL
	return proxy
}

// Next plans a fault for the next request with the method ("" for any) whose path
// contains the part. Faults for the same requests happen one after the other.
func (p *FaultProxy) Next(method, part string, fault Fault) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.planned = append(p.planned, plannedFault{method, part, fault})
}

// Left returns how many planned faults have not happened.
func (p *FaultProxy) Left() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.planned)
}

// Requests returns every request so far, as "GET /path".
func (p *FaultProxy) Requests() []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return append([]string(nil), p.requests...)
}

func (p *FaultProxy) take(r *http.Request) Fault {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.requests = append(p.requests, r.Method+" "+r.URL.Path)
	for i, planned := range p.planned {
		if (planned.method == "" || planned.method == r.Method) && strings.Contains(r.URL.Path, planned.part) {
			p.planned = append(p.planned[:i:i], p.planned[i+1:]...)
			return planned.fault
		}
	}
	return nil
}

// Respond gives an answer of its own; the server does not see the request.
func Respond(status int, header map[string]string, body string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for name, value := range header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// CutBefore ends the connection; the server does not see the request.
func CutBefore(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }

// CutAfter lets the server do what was asked, and ends the connection without an
// answer.
func CutAfter(_ http.ResponseWriter, r *http.Request, forward http.Handler) {
	forward.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// CutWithin lets the server do what was asked, and ends the connection in the
// middle of the answer.
func CutWithin(w http.ResponseWriter, r *http.Request, forward http.Handler) {
	answer := copyAnswer(w, r, forward)
	w.Header().Set("Content-Length", fmt.Sprint(answer.Body.Len()))
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// HalfJSON lets the server do what was asked, and gives half of its answer as if
// it were all.
func HalfJSON(w http.ResponseWriter, r *http.Request, forward http.Handler) {
	answer := copyAnswer(w, r, forward)
	w.Header().Del("Content-Length")
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
}

// FailAfter lets the server do what was asked, and answers with a failure.
func FailAfter(status int) Fault {
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		forward.ServeHTTP(httptest.NewRecorder(), r)
		w.WriteHeader(status)
	}
}

// Hang holds the request until the client gives up.
func Hang(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() }

func copyAnswer(w http.ResponseWriter, r *http.Request, forward http.Handler) *httptest.ResponseRecorder {
	r.Header.Set("Accept-Encoding", "identity")
	answer := httptest.NewRecorder()
	forward.ServeHTTP(answer, r)
	maps.Copy(w.Header(), answer.Header())
	return answer
}
