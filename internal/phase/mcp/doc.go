// Package mcp adds the tools of MCP servers to those of a phase, through the
// official SDK.
//
// A server is started or connected to once for a run and kept. Its tools have
// its name before theirs. A server with a command runs in the sandbox, unless it
// is configured to run on the host. What servers say is data from outside: their
// descriptions are cut to a sensible length and their results are quoted.
package mcp
