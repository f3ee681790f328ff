package site

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
)

// Links begin with the address for people, or else with that of the listener.
func TestPublicURL(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		server config.Server
		want   string
	}{
		{config.Server{}, "http://127.0.0.1:8750"},
		{config.Server{TLSCertFile: "tls.crt"}, "https://127.0.0.1:8750"},
		{config.Server{PublicURL: "https://toryo.example.com"}, "https://toryo.example.com"},
		{config.Server{PublicURL: "https://toryo.example.com:8443/", TLSCertFile: "tls.crt"}, "https://toryo.example.com:8443"},
	} {
		if got := PublicURL(config.Config{Server: test.server}, "127.0.0.1:8750"); got != test.want {
			t.Errorf("with %+v links begin with %s, want %s", test.server, got, test.want)
		}
	}
}
