package phase

import (
	"context"

	"github.com/toryo-dev/toryo/internal/phase/mcp"
	"github.com/toryo-dev/toryo/internal/task"
)

// Launch implements [mcp.Launcher] in the sandbox.
func (b *bench) Launch(context.Context, []string, map[string]string) (mcp.Process, error) {
	return mcp.Process{}, task.Errorf(task.Unsupported, "MCP servers in the sandbox are not supported yet").WithMend("set in_sandbox: false or use a url")
}
