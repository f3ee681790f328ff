package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// client asks for modules through the go command, from wherever this machine has them.
type client struct {
	dir     string // for what it does not keep
	environ []string
}

// version is one version of a module as go mod download has put it on this machine.
type version struct {
	Path, Version, Error string
	Info                 string // the file that says when it was made
	Dir                  string // its files
	Sum                  string
}

// command is the go command, told nothing by the settings of a workspace, and not to replace
// itself by another version because a module asks for one.
func (c client) command(ctx context.Context, dir string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = dir
	command.Env = append(append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GO111MODULE=on", "GOTOOLCHAIN=local"), c.environ...)
	var said bytes.Buffer
	command.Stderr = &said
	output, err := command.Output()
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("the go command is needed: %w", err)
	}
	if err != nil && said.Len() > 0 {
		err = unfitError{"the go command fails: go " + arguments[0], firstLine(said.String()), true}
	}
	return output, err
}

// versions are those that the proxy lists.
func (c client) versions(ctx context.Context, path string) ([]string, error) {
	output, err := c.command(ctx, c.dir, "list", "-m", "-versions", "-json", path+"@latest")
	if err != nil {
		return nil, err
	}
	var found struct{ Versions []string }
	if err := json.Unmarshal(output, &found); err != nil {
		return nil, fmt.Errorf("go list -m -versions -json: %w", err)
	}
	return found.Versions, nil
}

// download downloads both versions of a pair and fills in their sums and times. Sums that
// the list has must be the same.
func (c client) download(ctx context.Context, p *pair) (older, newer version, err error) {
	get := func(name string, sum, at *string) (found version, err error) {
		// On failure it prints its reason in the same form.
		output, err := c.command(ctx, c.dir, "mod", "download", "-json", p.module+"@"+name)
		if broken := json.Unmarshal(output, &found); broken != nil && err == nil {
			return found, fmt.Errorf("go mod download -json: %w", broken)
		}
		if found.Error != "" {
			err = unfitError{"it cannot be downloaded", firstLine(found.Error), true}
		}
		if err != nil {
			return found, ofListed(err, *sum != "")
		}
		if *sum != "" && *sum != found.Sum {
			return found, fmt.Errorf("%s %s has the sum %s, and the list says %s", p.module, name, found.Sum, *sum)
		}
		*sum = found.Sum
		*at, err = madeAt(found.Info)
		return found, err
	}
	if older, err = get(p.older, &p.olderSum, &p.olderTime); err == nil {
		newer, err = get(p.newer, &p.newerSum, &p.newerTime)
	}
	return older, newer, err
}

// madeAt is the time of a version, in UTC.
func madeAt(info string) (string, error) {
	text, err := os.ReadFile(info)
	if err != nil {
		return "", err
	}
	var said struct{ Time time.Time }
	if err := json.Unmarshal(text, &said); err != nil {
		return "", fmt.Errorf("%s: %w", info, err)
	}
	return said.Time.UTC().Format(time.RFC3339), nil
}
