package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
)

const (
	waitingAgents = 10_000
	watched       = 30 * time.Second // in which each agent asks again once
	// connecting is how many agents connect at once. The server closes connections of an
	// address that are too many and on which nobody has shown a token yet.
	connecting = 100
)

// measureWaiting lets agents wait for a task that never comes, over HTTP, and looks
// at what that costs the server, which is a process of its own. The database is
// SQLite: a server that waits does not ask it.
func measureWaiting(ctx context.Context, folder string) ([]row, error) {
	data := filepath.Join(folder, "waiting")
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, err
	}
	token, err := agentToken(ctx, filepath.Join(data, "toryo.db"))
	if err != nil {
		return nil, err
	}
	server := exec.CommandContext(ctx, filepath.Join(folder, "toryo"), "serve", "--addr", "127.0.0.1:0", "--data", data)
	server.Env = append(os.Environ(), "TORYO_SERVER_REQUESTS_PER_TOKEN=0", "TORYO_SERVER_REQUESTS_PER_ADDRESS=0", "TORYO_LOG_LEVEL=warn")
	server.Stderr = os.Stderr
	output, err := server.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := server.Start(); err != nil {
		return nil, err
	}
	defer func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	}()
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return nil, err
	}
	address := strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(line, "listening on ")), "http://")
	ctx, stop := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer stop()
	var asked, failed atomic.Int64
	free := make(chan struct{}, connecting)
	for range waitingAgents {
		waiting.Go(func() { waitOn(ctx, address, token, free, &asked, &failed) })
	}
	for asked.Load() < waitingAgents {
		if failed.Load() > 0 {
			return nil, fmt.Errorf("%d agents could not wait", failed.Load())
		}
		if err := lifecycle.Sleep(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
	used, err := usedWhile(ctx, server.Process.Pid)
	if err != nil {
		return nil, err
	}
	kilobytes, err := residentOf(server.Process.Pid)
	if err != nil {
		return nil, err
	}
	if failed.Load() > 0 {
		return nil, fmt.Errorf("%d agents could not wait", failed.Load())
	}
	name := fmt.Sprintf("%d agents that wait", waitingAgents)
	return []row{
		{"resident memory of a server with " + name, fmt.Sprintf("%.0f MB", float64(kilobytes)*1024/1e6), "under 250 MB"},
		{"processor time with " + name, fmt.Sprintf("%.1f %% of a core", 100*used.Seconds()/watched.Seconds()), "under 5 %"},
	}, nil
}

// usedWhile returns what a process uses of the processors while it is watched.
func usedWhile(ctx context.Context, pid int) (time.Duration, error) {
	if err := lifecycle.Sleep(ctx, 2*time.Second); err != nil { // the last ones are being let in
		return 0, err
	}
	before, err := processorTimeOf(pid)
	if err != nil {
		return 0, err
	}
	if err := lifecycle.Sleep(ctx, watched); err != nil {
		return 0, err
	}
	after, err := processorTimeOf(pid)
	return after - before, err
}

func agentToken(ctx context.Context, path string) (string, error) {
	database, err := sqlite.Open(ctx, path)
	if err != nil {
		return "", err
	}
	defer func() { _ = database.Close() }()
	return access.Tokens{Store: database, Now: time.Now}.Create(ctx, access.Agent, "bench")
}

// waitOn is one agent, on a connection of its own and as little memory of ours as
// can be: it shows its token, asks, and when the wait ends asks again.
func waitOn(ctx context.Context, address, token string, free chan struct{}, asked, failed *atomic.Int64) {
	connection, err := connectAgent(ctx, address, token, free)
	if err != nil {
		if ctx.Err() == nil {
			failed.Add(1)
		}
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer stop()
	defer func() { _ = connection.Close() }()
	asked.Add(1)
	const body = `{"agent_id":"bench"}`
	request := "POST /v1/tasks/request?wait=30s HTTP/1.1\r\nHost: " + address + "\r\nAuthorization: Bearer " + token +
		"\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
	for ctx.Err() == nil {
		if status, err := exchange(connection, request); err != nil || status != http.StatusNoContent {
			break
		}
	}
	if ctx.Err() == nil {
		failed.Add(1)
	}
}

// connectAgent opens a connection and shows the token on it.
func connectAgent(ctx context.Context, address, token string, free chan struct{}) (net.Conn, error) {
	select {
	case free <- struct{}{}:
		defer func() { <-free }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	connection, err := (&net.Dialer{Timeout: time.Minute}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer stop()
	status, err := exchange(connection, "GET /v1/me HTTP/1.1\r\nHost: "+address+"\r\nAuthorization: Bearer "+token+"\r\n\r\n")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the server answers %d", status)
	}
	if err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	return connection, nil
}

// exchange sends a request and reads the answer.
func exchange(connection net.Conn, request string) (status int, err error) {
	if _, err := io.WriteString(connection, request); err != nil {
		return 0, err
	}
	answer, err := http.ReadResponse(bufio.NewReaderSize(connection, 1024), nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, errors.Join(err, answer.Body.Close())
}

// processorTimeOf is what a process has used of the processors, and what the programs have
// that it ran and that have ended.
func processorTimeOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 15 {
		return 0, errors.New("what the process has used cannot be read")
	}
	sum := int64(0)
	for _, field := range fields[11:15] { // in user and in system mode, its own and those of the others
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += ticks
	}
	return time.Duration(sum) * 10 * time.Millisecond, nil // ticks of a hundredth
}
