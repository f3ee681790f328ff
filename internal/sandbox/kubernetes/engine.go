package kubernetes

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/local"
	"github.com/toryo-dev/toryo/internal/task"
)

// Name is the adapter's name.
const Name = "kubernetes"

// Engine starts pods.
type Engine struct {
	config Config
	api    *api
	warm   *warmPods

	mutex      sync.Mutex
	mine       map[string]bool // the pods that this process runs
	identities map[string]identity
	probed     bool // whether the network was looked at
	open       bool // and found to be open
	program    []byte
}

// New makes an engine. It does not speak to the cluster yet.
func New(config Config) (*Engine, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	at, err := connectionSettings(config.Kubeconfig, config.Context)
	if err != nil {
		return nil, err
	}
	return &Engine{config: config, api: newAPI(at, config.Namespace), warm: newWarmPods(config.Warm), mine: map[string]bool{}, identities: map[string]identity{}}, nil
}

// Name is the adapter's name.
func (e *Engine) Name() string { return Name }

// Capabilities implements [sandbox.Engine].
func (e *Engine) Capabilities() sandbox.Capabilities {
	return sandbox.Capabilities{Images: true, Network: true, Snapshots: true, FileOwner: local.NewOwner()}
}

const checkTimeout = 15 * time.Second

type need struct{ verb, resource, subresource string }

// needed is what the account has to be allowed.
var needed = []need{
	{"create", "pods", ""}, {"get", "pods", ""}, {"list", "pods", ""}, {"watch", "pods", ""}, {"delete", "pods", ""}, {"create", "pods", "exec"},
}

// Check asks whether the cluster answers, the namespace is there and the account
// may do what it has to.
func (e *Engine) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := e.api.call(ctx, http.MethodGet, "/api/v1/namespaces/"+e.config.Namespace, nil, nil, nil)
	if isStatus(err, http.StatusNotFound) {
		return task.Wrap(task.NotReady, err, "the namespace "+e.config.Namespace+" is not there").
			WithHint("apply deploy/kubernetes/sandboxes.yaml, or name another with sandbox.kubernetes.namespace")
	}
	if err != nil {
		return failed(err, "the namespace cannot be looked at")
	}
	needs := needed
	if e.config.Warm > 0 || e.config.EgressService != "" { // the labels of a pod change
		needs = append(slices.Clone(needs), need{"patch", "pods", ""})
	}
	for _, need := range needs {
		if err := e.allowed(ctx, need.verb, need.resource, need.subresource); err != nil {
			return err
		}
	}
	e.checkPolicies(ctx)
	return nil
}

func (e *Engine) allowed(ctx context.Context, verb, resource, subresource string) error {
	var said struct {
		Status struct {
			Allowed bool `json:"allowed"`
		} `json:"status"`
	}
	err := e.api.call(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", nil, object{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"spec": object{"resourceAttributes": object{"namespace": e.config.Namespace, "verb": verb, "resource": resource, "subresource": subresource}},
	}, &said)
	if err != nil {
		return failed(err, "what the account may do cannot be asked")
	}
	if !said.Status.Allowed {
		return task.Errorf(task.Forbidden, "the account may not %s %s in the namespace %s", verb, strings.TrimSuffix(resource+"/"+subresource, "/"), e.config.Namespace).
			WithHint("give the agent's account the role in deploy/kubernetes/sandboxes.yaml")
	}
	return nil
}

// pods are those of an owner that have the labels.
func (e *Engine) pods(ctx context.Context, owner, labels string) ([]pod, error) {
	selector := labelOwner + "=" + ownerLabel(owner) + "," + labels
	var found struct {
		Items []pod `json:"items"`
	}
	err := e.api.call(ctx, http.MethodGet, e.api.path("pods"), url.Values{"labelSelector": {selector}}, nil, &found)
	if err != nil {
		return nil, failed(err, "the pods cannot be listed")
	}
	return found.Items, nil
}

// List names the owner's sandboxes.
func (e *Engine) List(ctx context.Context, owner string) ([]sandbox.Info, error) {
	found, err := e.pods(ctx, owner, labelPart+"="+partSandbox+",!"+labelWarm)
	if err != nil {
		return nil, err
	}
	var infos []sandbox.Info
	for _, one := range found {
		notes := one.Metadata.Annotations
		generation, _ := strconv.ParseInt(notes[noteRun], 10, 64) // our own note
		infos = append(infos, sandbox.Info{ID: one.Metadata.Name, Engine: Name, Owner: owner, Task: notes[noteTask],
			Generation: generation, Started: one.Metadata.Created.UTC(), Running: one.running()})
	}
	return infos, nil
}

// helperAge is when a helper is old enough to be nobody's work.
const helperAge = time.Hour

// Reap removes the owner's pods that are not to be kept, those that another process kept ready,
// and old helpers.
func (e *Engine) Reap(ctx context.Context, owner string, keep func(sandbox.Info) bool) (int, error) {
	infos, err := e.List(ctx, owner)
	if err != nil {
		return 0, err
	}
	reaped := 0
	for _, info := range infos {
		if e.isMine(info.ID) || keep(info) {
			continue
		}
		if err := e.api.remove(ctx, info.ID); err != nil {
			return reaped, failed(err, "a pod cannot be removed")
		}
		reaped++
	}
	if err := e.reapWarm(ctx, owner); err != nil {
		return reaped, err
	}
	helpers, err := e.pods(ctx, owner, labelPart+"="+partHelper)
	if err != nil {
		return reaped, err
	}
	for _, helper := range helpers {
		if e.config.Now().Sub(helper.Metadata.Created) > helperAge {
			if err := e.api.remove(ctx, helper.Metadata.Name); err != nil {
				return reaped, failed(err, "a helper's pod cannot be removed")
			}
		}
	}
	return reaped, nil
}

func (e *Engine) isMine(name string) bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.mine[name]
}

func (e *Engine) setMine(name string, mine bool) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if mine {
		e.mine[name] = true
	} else {
		delete(e.mine, name)
	}
}
