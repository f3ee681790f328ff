package limit

import "sync"

// InFlight counts what is held for clients at a time, up to a limit for one and for all.
type InFlight struct {
	PerClient, Most int

	mutex   sync.Mutex
	all     int
	clients map[string]int
}

// Take counts so much more for the client, unless that is too much.
func (f *InFlight) Take(client string, size int) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.all+size > f.Most || f.clients[client]+size > f.PerClient {
		return false
	}
	if f.clients == nil {
		f.clients = make(map[string]int)
	}
	f.all += size
	f.clients[client] += size
	return true
}

// Release takes off what was counted.
func (f *InFlight) Release(client string, size int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.all -= size
	if f.clients[client] -= size; f.clients[client] <= 0 {
		delete(f.clients, client)
	}
}
