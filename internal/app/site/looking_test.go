package site_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/redact"
)

// doctor says where the agent's token comes from, as the agent takes it: from the configuration if
// it gives one, and otherwise from the agent's own file.
func TestWhereTheTokenOfAnAgentComesFrom(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.DataDir, c.Agent.Server = t.TempDir(), "http://127.0.0.1:1"
	if look := site.LookAtServer(c); look.HasToken || look.Configured != "" || look.Problem != nil {
		t.Errorf("without a token: %+v", look)
	}
	file := filepath.Join(c.DataDir, site.AgentFolder, "token")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("kept-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	if look := site.LookAtServer(c); !look.HasToken || look.Configured != "" || look.TokenFile != file {
		t.Errorf("with one that the agent keeps: %+v", look)
	}
	c.Agent.Token = redact.Secret("given-token")
	if look := site.LookAtServer(c); !look.HasToken || !strings.Contains(look.Configured, "TORYO_AGENT_TOKEN") {
		t.Errorf("with one in the configuration: %+v", look)
	}
	c.Agent.TokenFile = "/run/secrets/agent"
	if look := site.LookAtServer(c); !look.HasToken || !strings.HasPrefix(look.Configured, "agent.token_file (/run/secrets/agent;") {
		t.Errorf("with one in a file: %+v", look)
	}
}
