package testkit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// FreePort is a port of 127.0.0.1 on which nobody listens. It is none of those that the system
// gives to whoever asks for any, so that it is still free when a program is started there
// later, and again.
func FreePort() (int, error) {
	const first, many = 20000, 12000
	for range 100 {
		port := first + rand.IntN(many)
		listener, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)) //nolint:noctx // ends at once
		if err == nil {
			return port, listener.Close()
		}
	}
	return 0, errors.New("there is no free port")
}
