package kubernetes

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// networkLabel is by which the cluster's network policies know a pod. Where the
// agent filters, the pod itself has no network under any policy.
func (e *Engine) networkLabel(policy sandbox.Policy) string {
	if e.config.EgressService == "" {
		return string(sandbox.NoNetwork)
	}
	return string(policy)
}

// SetNetwork changes the policy.
func (b *box) SetNetwork(ctx context.Context, policy sandbox.Policy) error {
	if !policy.Valid() {
		return task.Errorf(task.Invalid, "unknown network policy %q", string(policy))
	}
	b.gate.SetPolicy(policy)
	if b.engine.config.EgressService == "" {
		return nil
	}
	err := b.engine.api.call(ctx, http.MethodPatch, b.engine.api.path("pods", b.info.ID), nil,
		object{"metadata": object{"labels": object{labelNetwork: string(policy)}}}, nil)
	if err != nil {
		return failed(err, "the pod's network policy cannot be changed")
	}
	return b.route(ctx, policy)
}

// route sends the guest's connections to the proxy's pod, if there is one.
func (b *box) route(ctx context.Context, policy sandbox.Policy) error {
	if b.engine.config.EgressService == "" {
		return nil
	}
	address := "" // to the agent, whose gate refuses everything
	if policy != sandbox.NoNetwork {
		found, err := b.engine.egressAddress(ctx, policy)
		if err != nil {
			return err
		}
		address = found
	}
	return b.client.Route(ctx, address)
}

// openNetwork routes the proxy of the sandbox, and checks once whether pods reach more than that.
func (b *box) openNetwork(ctx context.Context) error {
	if err := b.route(ctx, b.spec.Network); err != nil {
		return b.explain(err)
	}
	e := b.engine
	e.mutex.Lock()
	look := !e.probed
	e.probed = true
	e.mutex.Unlock()
	if look {
		b.working.Go(func() { b.probe(context.WithoutCancel(ctx)) }) // the client's end ends it
	}
	return nil
}

// probe tries to reach what is there in every cluster and no sandbox may reach.
func (b *box) probe(ctx context.Context) {
	e := b.engine
	now, err := e.api.getPod(ctx, b.info.ID)
	if err != nil {
		e.config.Log.DebugContext(ctx, "kubernetes: failed to check network policies", "error", err)
		return
	}
	server := e.api.cluster.server
	port := server.Port()
	if port == "" {
		port = "443"
	}
	const kubeletPort = "10250"
	reached, err := b.client.Reach(ctx, []string{net.JoinHostPort(server.Hostname(), port), net.JoinHostPort(now.Status.HostIP, kubeletPort)})
	if err != nil {
		e.config.Log.DebugContext(ctx, "kubernetes: failed to check network policies", "error", err)
		return
	}
	if len(reached) == 0 {
		return
	}
	e.mutex.Lock()
	e.open = true
	e.mutex.Unlock()
	e.config.Log.WarnContext(ctx, "kubernetes: this cluster does not enforce network policies: code in a sandbox can reach the cluster's network, whatever its policy says. Use a network plug-in that enforces them",
		"reached", strings.Join(reached, " "))
}

// NetworkIsOpen reports whether a sandbox was seen to reach what it may not.
func (e *Engine) NetworkIsOpen() bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.open
}

// checkPolicies warns when the namespace lacks the network policies.
func (e *Engine) checkPolicies(ctx context.Context) {
	if missing, err := e.MissingPolicies(ctx); err != nil || len(missing) > 0 {
		e.config.Log.WarnContext(ctx, "kubernetes: network policies are missing in the namespace, so that code in a sandbox can reach the cluster's network. Apply deploy/kubernetes/sandboxes.yaml",
			"missing", strings.Join(missing, " "), "error", err)
	}
}

// MissingPolicies names the network policies that the namespace should have and
// does not.
func (e *Engine) MissingPolicies(ctx context.Context) ([]string, error) {
	var found struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"items"`
	}
	err := e.api.call(ctx, http.MethodGet, "/apis/networking.k8s.io/v1/namespaces/"+e.config.Namespace+"/networkpolicies", nil, nil, &found)
	if err != nil {
		return nil, failed(err, "the network policies cannot be listed")
	}
	there := map[string]bool{}
	for _, item := range found.Items {
		there[item.Metadata.Name] = true
	}
	var missing []string
	for _, policy := range []sandbox.Policy{sandbox.NoNetwork, sandbox.Registries, sandbox.OpenWorld} {
		if name := "toryo-" + string(policy); !there[name] {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// egressAddress is where the filtering proxy takes connections for a policy: the
// service has a port of its name. A pod has no names to look up, so it is told an
// address.
func (e *Engine) egressAddress(ctx context.Context, policy sandbox.Policy) (string, error) {
	var service struct {
		Spec struct {
			ClusterIP string            `json:"clusterIP"`
			Selector  map[string]string `json:"selector"`
			Ports     []struct {
				Name string `json:"name"`
				Port int    `json:"port"`
			} `json:"ports"`
		} `json:"spec"`
	}
	name := e.config.EgressService
	if err := e.api.call(ctx, http.MethodGet, e.api.path("services", name), nil, nil, &service); err != nil {
		return "", failed(err, "the service "+name+" of the filtering proxy cannot be looked at")
	}
	port := 0
	for _, one := range service.Spec.Ports {
		if one.Name == string(policy) {
			port = one.Port
		}
	}
	if port == 0 {
		return "", task.Errorf(task.BadConfig, "the service %s has no port named %s", name, string(policy))
	}
	if ip := service.Spec.ClusterIP; ip != "" && ip != "None" {
		return net.JoinHostPort(ip, strconv.Itoa(port)), nil
	}
	return e.egressPod(ctx, service.Spec.Selector, port)
}

// egressPod is a pod of a service without an address of its own.
func (e *Engine) egressPod(ctx context.Context, selector map[string]string, port int) (string, error) {
	var terms []string
	for key, value := range selector {
		terms = append(terms, key+"="+value)
	}
	var found struct {
		Items []pod `json:"items"`
	}
	if err := e.api.call(ctx, http.MethodGet, e.api.path("pods"), url.Values{"labelSelector": {strings.Join(terms, ",")}}, nil, &found); err != nil {
		return "", failed(err, "the pods of the filtering proxy cannot be listed")
	}
	for _, one := range found.Items {
		if one.running() && one.Status.Containers[0].Ready && one.Status.IP != "" {
			return net.JoinHostPort(one.Status.IP, strconv.Itoa(port)), nil
		}
	}
	return "", task.Errorf(task.NotReady, "no pod of the filtering proxy %s is ready", e.config.EgressService)
}
