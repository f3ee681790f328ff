package connectpage

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/sandbox/egress"
	"github.com/toryo-dev/toryo/internal/task"
)

// errNotAllowed is that of an address that nothing is sent to.
var errNotAllowed = errors.New("this address answers machines about themselves, and is no forge")

// NewClient makes the client that asks addresses which administrators give. It goes where the
// operator may let a sandbox go by naming a host, so also into the operator's own network, and
// never to the services of clouds that give machines credentials. It follows no redirections.
func NewClient() *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, ControlContext: allowed}
	return forge.HTTPClient(&http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 30 * time.Second, IdleConnTimeout: time.Minute, MaxIdleConns: 10,
	})
}

// allowed decides on each address that is dialled, after names are resolved.
func allowed(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if egress.MayReach(at.Addr(), egress.Configured) != nil {
		return errNotAllowed
	}
	return nil
}

// mayAsk refuses an address that leads where nothing is sent to, before anybody is asked there.
// A name may lead elsewhere the next time, which [NewClient] notices when it is dialled. Behind
// a proxy, which is all that is dialled then, this is all that is known; a name that is not
// known here may be known to the proxy.
func mayAsk(ctx context.Context, address string) error {
	at, err := url.Parse(address)
	if err != nil {
		return task.Errorf(task.Invalid, "the address cannot be read")
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", at.Hostname())
	if err != nil {
		return nil //nolint:nilerr // whoever asks finds out
	}
	for _, ip := range found {
		if egress.MayReach(ip, egress.Configured) != nil {
			return task.Errorf(task.Invalid, "%s cannot be used", address).WithHint("%s", errNotAllowed)
		}
	}
	return nil
}
