package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ticks is how many units of time Linux counts in a second in /proc, on all machines
// that Go runs on.
const ticks = 100

// Fields of /proc/self/stat, counted from the one after the program's name.
const (
	userTime    = 11
	systemTime  = 12
	startTime   = 19
	virtualSize = 20
	resident    = 21
)

var errProc = errors.New("what /proc says was not understood")

// AddProcess adds what the system says about this process. Where it does not say it in
// the way of Linux, nothing is added.
func (r *Registry) AddProcess() {
	page := float64(os.Getpagesize())
	booted, unknown := bootTime()
	for _, row := range []struct {
		kind, name, help string
		read             func() (float64, error)
	}{
		{counter, "process_cpu_seconds_total", "Processor time that was used so far.", func() (float64, error) {
			fields, err := stat(userTime, systemTime)
			return sum(fields) / ticks, err
		}},
		{gauge, "process_resident_memory_bytes", "Memory that is in RAM.", func() (float64, error) {
			fields, err := stat(resident)
			return sum(fields) * page, err
		}},
		{gauge, "process_virtual_memory_bytes", "Size of the address space.", func() (float64, error) {
			fields, err := stat(virtualSize)
			return sum(fields), err
		}},
		{gauge, "process_virtual_memory_max_bytes", "Limit of the address space.", func() (float64, error) { return limit("Max address space") }},
		{gauge, "process_start_time_seconds", "When the process began, in seconds since 1970.", func() (float64, error) {
			fields, err := stat(startTime)
			return booted + sum(fields)/ticks, errors.Join(err, unknown)
		}},
		{gauge, "process_open_fds", "Files, connections and pipes that are open.", openFiles},
		{gauge, "process_max_fds", "Limit of process_open_fds.", func() (float64, error) { return limit("Max open files") }},
	} {
		if _, err := row.read(); err != nil {
			continue
		}
		r.addFunc(row.kind, row.name, row.help, func() float64 {
			value, _ := row.read() // which could be read before
			return value
		}, nil)
	}
}

func sum(numbers []float64) (total float64) {
	for _, one := range numbers {
		total += one
	}
	return total
}

// stat reads fields of /proc/self/stat.
func stat(fields ...int) ([]float64, error) {
	content, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return nil, fmt.Errorf("read the state of the process: %w", err)
	}
	// The name of the program may hold anything, but is in parentheses.
	_, content, _ = bytes.Cut(content[max(0, bytes.LastIndexByte(content, ')')):], []byte(" "))
	all := strings.Fields(string(content))
	values := make([]float64, len(fields))
	for i, field := range fields {
		if field >= len(all) {
			return nil, errProc
		}
		if values[i], err = strconv.ParseFloat(all[field], 64); err != nil {
			return nil, errProc
		}
	}
	return values, nil
}

// bootTime is when the system was started, in seconds since 1970.
func bootTime() (float64, error) { return line("/proc/stat", "btime") }

// limit is a limit of the process, as it is enforced.
func limit(name string) (float64, error) { return line("/proc/self/limits", name) }

// line finds the line that begins with name and reads the number after it.
func line(file, name string) (float64, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("read what the system says: %w", err)
	}
	for text := range strings.Lines(string(content)) {
		rest, found := strings.CutPrefix(text, name)
		if fields := strings.Fields(rest); found && len(fields) > 0 {
			if fields[0] == "unlimited" {
				return 1 << 64, nil
			}
			value, err := strconv.ParseFloat(fields[0], 64)
			if err != nil {
				return 0, errProc
			}
			return value, nil
		}
	}
	return 0, errProc
}

func openFiles() (float64, error) {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0, fmt.Errorf("count what is open: %w", err)
	}
	return float64(len(names) - 1), nil // without the one that this used
}
