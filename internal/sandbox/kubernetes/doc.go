// Package kubernetes is the sandbox adapter for a Kubernetes cluster: one pod per
// sandbox, in a namespace that is there for them.
//
// The pod runs as an ordinary user without capabilities, without a token of the
// cluster, and with limits. Its first process is the guest, which comes in from
// the image that is configured for it, or over the API server where none is.
//
// Host and guest speak through "exec", the one way into a pod that needs no
// network: the API server carries the standard streams of a small relay, which
// passes them on to the guest. A relay that ends, a stream that is cut and an API
// server that restarts cost nothing but the time until the next relay is there:
// see [guest.Link].
//
// The workspace is not shared. What has changed on the host goes in before a
// command, and what the command has changed comes out after it. Folders that
// package managers fill stay in the pod.
//
// A snapshot is one file on a volume claim, if one is configured. Each pod sees
// only its own folder of the claim, and the one snapshot that it starts from; the
// digest of that is kept where no pod can change it, in a config map.
//
// The API is spoken with plain requests: the client library of Kubernetes would
// make the program a third larger.
package kubernetes
