package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/tool"
)

const (
	longestName        = 64
	longestDescription = 1500
	longestResult      = 16_000
	longestSchema      = 16_000
	mostTools          = 100 // of one server
)

var notInName = lazyregexp.New(`[^a-zA-Z0-9_-]+`)

// names gives every tool a name of its own.
type names struct{ taken map[string]bool }

func newNames() *names { return &names{taken: map[string]bool{}} }

func (n *names) of(server, name string) string {
	base := "mcp_" + notInName.ReplaceAllString(server, "_") + "_" + notInName.ReplaceAllString(name, "_")
	unique := base[:min(len(base), longestName)]
	for i := 2; n.taken[unique]; i++ {
		ending := fmt.Sprintf("_%d", i)
		unique = base[:min(len(base), longestName-len(ending))] + ending
	}
	n.taken[unique] = true
	return unique
}

// remote is a tool of a server.
type remote struct {
	connection *connection
	name       string // as the server knows it
	definition llm.Tool
	readOnly   bool
}

var _ tool.Tool = (*remote)(nil)

func newTool(c *connection, found *sdk.Tool, names *names) *remote {
	description := strings.TrimSpace(found.Description)
	if description == "" {
		description = found.Name
	}
	return &remote{
		connection: c, name: found.Name,
		definition: llm.Tool{
			Name:        names.of(c.server.Name, found.Name),
			Description: "From the MCP server " + c.server.Name + ": " + tool.Shorten(tool.Printable(description), longestDescription),
			Schema:      schemaOf(found),
		},
		readOnly: found.Annotations != nil && found.Annotations.ReadOnlyHint,
	}
}

// schemaOf is the schema of a tool, or one that allows any object when the
// server's cannot be used.
func schemaOf(found *sdk.Tool) []byte {
	anything := []byte(`{"type":"object"}`)
	data, err := json.Marshal(found.InputSchema)
	if err != nil {
		return anything
	}
	var schema jsonschema.Schema
	if len(data) > longestSchema || json.Unmarshal(data, &schema) != nil || schema.Type != "object" {
		return anything
	}
	if _, err := schema.Resolve(nil); err != nil {
		return anything
	}
	return data
}

func (r *remote) Definition() llm.Tool { return r.definition }
func (r *remote) ReadOnly() bool       { return r.readOnly }

// Call implements [tool.Tool]. Whatever goes wrong with a server is for the model
// to know: the run goes on without it.
func (r *remote) Call(ctx context.Context, _ llm.Call, arguments json.RawMessage) (tool.Output, error) {
	limit := r.connection.server.timeout()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	session, err := r.connection.get(limited)
	if err != nil {
		if ctx.Err() != nil {
			return tool.Output{}, context.Cause(ctx)
		}
		return tool.Output{}, tool.Mistake("the MCP server %s cannot be reached: %s", r.connection.server.Name, llm.QuoteLine(err.Error()))
	}
	result, err := session.CallTool(limited, &sdk.CallToolParams{Name: r.name, Arguments: arguments})
	switch {
	case ctx.Err() != nil:
		return tool.Output{}, context.Cause(ctx)
	case limited.Err() != nil:
		return tool.Output{}, tool.Mistake("the MCP server %s did not answer within %s", r.connection.server.Name, limit)
	case err != nil:
		if _, ok := errors.AsType[*jsonrpc.Error](err); !ok {
			r.connection.lost(session)
		}
		// What it says is not ours, and may be long.
		return tool.Output{Text: tool.Shorten(tool.Printable(err.Error()), longestResult), Origin: "error of the MCP server " + r.connection.server.Name, Failed: true}, nil
	}
	whole := textOf(result)
	return tool.Output{
		Text: tool.Shorten(tool.Printable(whole), longestResult), Whole: whole,
		Origin: "MCP server " + r.connection.server.Name, Failed: result.IsError,
	}, nil
}

// textOf is a result as text. What is not text is named.
func textOf(result *sdk.CallToolResult) string {
	var texts []string
	for _, content := range result.Content {
		switch content := content.(type) {
		case *sdk.TextContent:
			texts = append(texts, content.Text)
		case *sdk.ImageContent:
			texts = append(texts, fmt.Sprintf("[an image, %s, %d bytes]", content.MIMEType, len(content.Data)))
		case *sdk.AudioContent:
			texts = append(texts, fmt.Sprintf("[audio, %s, %d bytes]", content.MIMEType, len(content.Data)))
		case *sdk.ResourceLink:
			texts = append(texts, "[a link: "+content.URI+"]")
		case *sdk.EmbeddedResource:
			if content.Resource != nil {
				texts = append(texts, content.Resource.Text)
			}
		}
	}
	if len(texts) == 0 && result.StructuredContent != nil {
		if data, err := json.Marshal(result.StructuredContent); err == nil {
			texts = append(texts, string(data))
		}
	}
	if len(texts) == 0 {
		return "(no output)"
	}
	return strings.Join(texts, "\n")
}
