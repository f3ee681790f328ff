// Package limit bounds what clients can take of a server, most of all while it is not known
// who they are:
//
//	Rate         how many requests in a second
//	InFlight     how many requests, or how much memory for their bodies, at once
//	Connections  how many connections on which nobody is known
//	SetDeadline  how long the body of a request may take to arrive
//
// A client is an address or, of IPv6, a network; see access.Network. Whoever shows a valid
// token or session is known from then on: see [Known].
package limit
