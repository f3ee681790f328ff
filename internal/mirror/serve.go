package mirror

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	program "github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

// Holder is the run that a token belongs to.
type Holder struct {
	Task       task.ID
	Generation int64
	Repository task.Repository
	ReadOnly   bool // it is a person, who may fetch what the task has made
}

// Authenticate tells whose token it is that is shown for a task. It fails, with any error, for a token
// that is not known or whose run is over, and is asked anew each time.
type Authenticate func(ctx context.Context, id task.ID, token string) (Holder, error)

// maxTaskID is longer than any id of a task. What stands in the path can be anything.
const maxTaskID = 64

// maxRequest is the most that is read of a request which is not a push.
const maxRequest = 16 << 20

// Handler serves git to agents, below any prefix that was stripped, as
// /<task>.git. The token is the password of basic authentication, under any user
// name.
func (m *Mirrors) Handler(authenticate Authenticate) http.Handler {
	mux := http.NewServeMux()
	serve := func(service func(*http.Request) string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			m.answer(w, r, service(r), authenticate)
		}
	}
	mux.HandleFunc("GET /{task}/info/refs", serve(func(r *http.Request) string { return r.URL.Query().Get("service") }))
	mux.HandleFunc("POST /{task}/git-upload-pack", serve(func(*http.Request) string { return uploadPack }))
	mux.HandleFunc("POST /{task}/git-receive-pack", serve(func(*http.Request) string { return receivePack }))
	return mux
}

const (
	uploadPack  = "git-upload-pack"  // what an agent fetches with
	receivePack = "git-receive-pack" // and pushes with
)

// noRepository is the response when git cannot be run on the repository.
var noRepository = program.ErrorLine(task.Unavailable, "the repository is not to be had")

// answer serves one request.
func (m *Mirrors) answer(w http.ResponseWriter, r *http.Request, service string, authenticate Authenticate) {
	if service != uploadPack && service != receivePack {
		http.Error(w, "only git's smart protocol is served", http.StatusForbidden)
		return
	}
	_, token, given := r.BasicAuth()
	if !given {
		w.Header().Set("WWW-Authenticate", `Basic realm="toryo"`)
		http.Error(w, "the token of the task's lease is needed", http.StatusUnauthorized)
		return
	}
	id := task.ID(strings.TrimSuffix(r.PathValue("task"), ".git"))
	holder, err := authenticate(r.Context(), id, token)
	if err == nil {
		err = mayUse(holder, r.PathValue("task"), service)
	}
	if err != nil {
		log := m.options.Log.With("task", id[:min(len(id), maxTaskID)], "error", err)
		m.refused.Do(func() { log.Warn("an agent's git is refused") })
		if code, text := refusal(err); code == task.Unavailable {
			http.Error(w, program.ErrorLine(code, text), http.StatusServiceUnavailable)
			return
		}
		http.Error(w, program.ErrorLine(task.LeaseLost, "the run is over, or the token is not of this task"), http.StatusForbidden)
		return
	}
	release := m.use(holder.Repository) // before it counts as served: requests for other repositories need not wait
	defer release()
	select {
	case m.serving <- struct{}{}:
		defer func() { <-m.serving }()
	case <-r.Context().Done():
		return
	}
	if service == uploadPack && r.Method == http.MethodGet {
		m.offerFresh(r.Context(), holder)
	}
	again := func(ctx context.Context) error {
		now, err := authenticate(ctx, id, token)
		if err == nil && now != holder {
			err = task.Errorf(task.StaleGeneration, "the token is of another run by now")
		}
		return err
	}
	if err := m.backend(w, r, service, holder, again); err != nil {
		m.options.Log.WarnContext(r.Context(), "an agent's git failed", "task", holder.Task, "service", service, "error", err)
	}
}

// offerFresh brings the base up to date for an agent, if that can be done.
func (m *Mirrors) offerFresh(ctx context.Context, holder Holder) {
	if holder.ReadOnly {
		return
	}
	if err := m.freshen(ctx, holder); err != nil {
		m.options.Log.WarnContext(ctx, "failed to update the base of a task; its agent gets the local copy", "task", holder.Task, "error", err)
	}
}

// mayUse says whether whoever holds one task may do this with the task in the path.
func mayUse(holder Holder, path, service string) error {
	if string(holder.Task)+".git" != path {
		return task.Errorf(task.Forbidden, "the token is of another task")
	}
	if holder.ReadOnly && service != uploadPack {
		return task.Errorf(task.Forbidden, "only whoever holds the task may push")
	}
	return nil
}

// backend lets git http-backend answer. Its caller has the mirror in use. Its errors come too
// late to be shown, or are shown already.
func (m *Mirrors) backend(w http.ResponseWriter, r *http.Request, service string, holder Holder, again func(context.Context) error) error {
	at, err := m.placeOf(r.Context(), holder.Repository, holder.Task)
	if err == nil {
		err = m.bringIn(r.Context(), at)
	}
	if err != nil {
		http.Error(w, noRepository, http.StatusInternalServerError)
		return err
	}
	limit := int64(maxRequest)
	if service == receivePack {
		limit = m.options.MaxPush
	}
	cmd := exec.CommandContext(r.Context(), m.git.Path(), append(m.servingFlags(), "http-backend")...)
	cmd.Env = append(m.git.Environment(), m.variables(r, holder)...)
	cmd.Dir = m.options.Root
	if r.Method == http.MethodPost {
		// Not told of the writer, which the copying of the answer is using.
		cmd.Stdin = http.MaxBytesReader(nil, r.Body, limit)
	}
	var stderr strings.Builder
	cmd.Stderr = &shortText{to: &stderr}
	program.EndGently(cmd)
	gate, err := openGate(cmd)
	if err != nil {
		http.Error(w, noRepository, http.StatusInternalServerError)
		return err
	}
	push := &pushing{mirrors: m, place: at, holder: holder, again: again}
	defer push.end()
	defer gate.close()
	output, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		http.Error(w, noRepository, http.StatusInternalServerError)
		return err
	}
	gate.watch(r.Context(), push.decide)
	copyErr := copyAnswer(w, output)
	if copyErr != nil {
		_ = cmd.Cancel() // nobody reads what it still has to say
	}
	err = errors.Join(copyErr, cmd.Wait())
	if err != nil {
		return &program.RunError{What: "http-backend", Stderr: stderr.String(), Err: err}
	}
	return nil
}

// servingFlags are for the processes that serve agents.
func (m *Mirrors) servingFlags() []string {
	return m.git.Flags(append(tolerance("receive"),
		"core.hooksPath="+m.git.hooks,
		// The comment on work that was kept names its commit, for old versions of git too.
		"uploadpack.allowAnySHA1InWant=true",
		"receive.maxInputSize="+strconv.FormatInt(m.options.MaxPush, 10),
		// Agents are near: what is packed anew for one of them is not worth the
		// search for what is alike in it. What is packed well stays so.
		"pack.threads=2", "pack.windowMemory=128m", "pack.window=0", "pack.compression=1",
	)...)
}

// variables is what CGI wants to know of a request.
func (m *Mirrors) variables(r *http.Request, holder Holder) []string {
	_, action, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	dir := m.dir(holder.Repository)
	variables := []string{
		"GATEWAY_INTERFACE=CGI/1.1", "SERVER_PROTOCOL=HTTP/1.1",
		"REQUEST_METHOD=" + r.Method, "QUERY_STRING=" + r.URL.RawQuery, "CONTENT_TYPE=" + r.Header.Get("Content-Type"),
		"GIT_PROJECT_ROOT=" + filepath.Dir(dir), "PATH_INFO=/" + filepath.Base(dir) + "/" + action,
		"GIT_HTTP_EXPORT_ALL=1", "GIT_NAMESPACE=" + string(holder.Task), "REMOTE_USER=task", "REMOTE_ADDR=agent",
		"GIT_COMMITTER_NAME=toryo", "GIT_COMMITTER_EMAIL=toryo@localhost",
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" {
		variables = append(variables, "HTTP_CONTENT_ENCODING="+encoding)
	}
	if version := r.Header.Get("Git-Protocol"); protocolVersion(version) {
		variables = append(variables, "HTTP_GIT_PROTOCOL="+version)
	}
	if r.ContentLength >= 0 && r.Method == http.MethodPost {
		variables = append(variables, "CONTENT_LENGTH="+strconv.FormatInt(r.ContentLength, 10))
	}
	return variables
}

// protocolVersion reports whether the header is one that git understands.
func protocolVersion(header string) bool {
	return header == "version=1" || header == "version=2"
}

// copyAnswer gives the client what a CGI program answers.
func copyAnswer(w http.ResponseWriter, output io.Reader) error {
	reader := bufio.NewReaderSize(output, 64<<10)
	header, err := textproto.NewReader(reader).ReadMIMEHeader()
	if err != nil {
		http.Error(w, noRepository, http.StatusInternalServerError)
		return err
	}
	status := http.StatusOK
	if text := header.Get("Status"); text != "" {
		header.Del("Status")
		code, _, _ := strings.Cut(text, " ")
		if status, err = strconv.Atoi(code); err != nil || status < 200 || status > 599 {
			http.Error(w, noRepository, http.StatusInternalServerError)
			return errors.New("git answers the status " + strconv.Quote(text))
		}
	}
	maps.Copy(w.Header(), http.Header(header))
	w.WriteHeader(status)
	_, err = io.Copy(flushing{w, http.NewResponseController(w)}, reader)
	return err
}

// flushing passes on at once what is written: progress is to be seen.
type flushing struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	if err != nil {
		return n, err
	}
	if err := f.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return n, err
	}
	return n, nil
}

// maxTail is how much is kept of what git says when it fails.
const maxTail = 4 << 10

// shortText keeps the start of what is written to it.
type shortText struct{ to *strings.Builder }

func (s *shortText) Write(p []byte) (int, error) {
	if room := maxTail - s.to.Len(); room > 0 {
		s.to.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// writeHook writes the one hook that we have. Several servers on one machine may
// do so at once, so each makes a file of its own and moves it there whole.
func (o Options) writeHook(dir string) error {
	if o.ReadOnly {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	making, err := os.CreateTemp(dir, "making-*")
	if err != nil {
		return err
	}
	_, err = making.WriteString(preReceive)
	err = errors.Join(err, making.Chmod(0o700), making.Close())
	if err == nil {
		err = os.Rename(making.Name(), filepath.Join(dir, "pre-receive"))
	}
	if err != nil {
		err = errors.Join(err, os.Remove(making.Name()))
	}
	return err
}
