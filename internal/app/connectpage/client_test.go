package connectpage

import "testing"

// Administrators may name what is in the operator's own network, but nothing is sent to where
// clouds give machines credentials.
func TestWhatMayBeAsked(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"127.0.0.1:3000": true, "10.1.2.3:443": true, "[fd12::1]:443": true, "192.0.2.1:443": true, "[::1]:80": true,
		"169.254.169.254:80": false, "[fe80::1%eth0]:80": false, "[::ffff:169.254.169.254]:80": false, "[fd00:ec2::254]:80": false, "168.63.129.16:80": false, "0.0.0.0:80": false, "nonsense": false,
	} {
		if err := allowed(t.Context(), "tcp", address, nil); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	for address, want := range map[string]bool{"http://169.254.169.254/latest": false, "http://127.0.0.1:11434/v1": true, "http://[fe80::1]:80": false} {
		if err := mayAsk(t.Context(), address); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
}
