package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox/guest"
)

// starts is how often the program is started: one start says little.
const starts = 15

// buildProgram builds the program as it is released.
func buildProgram(ctx context.Context, folder string) error {
	flags := "-s -w -X github.com/toryo-dev/toryo/internal/sandbox/guest.version=bench"
	for name, from := range map[string]string{"toryo": "./cmd/toryo", guest.LinuxProgram: "./internal/sandbox/guest/program"} {
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", flags, "-o", filepath.Join(folder, name), from)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("build: %w", err)
		}
	}
	return nil
}

// measureProgram looks at the size of the program, how long it takes to start on an
// empty database, and its memory when idle.
func measureProgram(ctx context.Context, folder string) ([]row, error) {
	program := filepath.Join(folder, "toryo")
	info, err := os.Stat(program)
	if err != nil {
		return nil, err
	}
	var ready []time.Duration
	var resident []int
	for i := range starts {
		took, kilobytes, err := startOnce(ctx, program, filepath.Join(folder, fmt.Sprintf("start-%d", i)))
		if err != nil {
			return nil, fmt.Errorf("start: %w", err)
		}
		ready, resident = append(ready, took), append(resident, kilobytes)
	}
	slices.Sort(ready)
	slices.Sort(resident)
	return []row{
		{"binary size", fmt.Sprintf("%.1f MB", float64(info.Size())/1e6), "under 60 MB"},
		{"cold start on an empty SQLite file to first answer, median", ready[starts/2].Round(time.Millisecond).String(), "under 300 ms"},
		{"the same, slowest of " + fmt.Sprint(starts), ready[starts-1].Round(time.Millisecond).String(), ""},
		{"resident memory idle, median", fmt.Sprintf("%.1f MB", float64(resident[starts/2])*1024/1e6), "under 60 MB"},
	}, nil
}

// startOnce starts the server on a new folder and returns how long it was until
// the first request was answered, and its resident memory then in kilobytes.
func startOnce(ctx context.Context, program, data string) (took time.Duration, kilobytes int, err error) {
	server := exec.CommandContext(ctx, program, "serve", "--addr", "127.0.0.1:0", "--data", data)
	server.Stderr = os.Stderr
	output, err := server.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	begun := time.Now()
	if err := server.Start(); err != nil {
		return 0, 0, err
	}
	defer func() {
		err = errors.Join(err, server.Process.Signal(syscall.SIGTERM), server.Wait())
	}()
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return 0, 0, err
	}
	address := strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	if err := ask(ctx, address+"/readyz"); err != nil {
		return 0, 0, err
	}
	took = time.Since(begun)
	kilobytes, err = residentOf(server.Process.Pid)
	return took, kilobytes, err
}

func ask(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: time.Minute}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, answer.Status)
	}
	return nil
}

func residentOf(pid int) (kilobytes int, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(status), "VmRSS:")
	if !found {
		return 0, errors.New("the kernel does not say how much memory is resident")
	}
	_, err = fmt.Sscan(rest, &kilobytes)
	return kilobytes, err
}
