package kubernetes

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/task"
)

// object is a part of a pod as the API wants it.
type object = map[string]any

const (
	containerName = "sandbox"
	guestFolder   = "/.toryo"
	guestPath     = guestFolder + "/guest"
	snapshotPath  = "/.toryo-shelf"
	sourcePath    = "/.toryo-source"
	guestSocket   = "@toryo-guest" // an abstract one, that no command can remove

	labelOwner   = "toryo.dev/owner" // a digest: labels are short
	labelNetwork = "toryo.dev/network"
	labelPart    = "toryo.dev/part"
	labelWarm    = "toryo.dev/warm" // of a sandbox that is kept ready, until it is taken
	noteOwner    = "toryo.dev/owner-name"
	noteTask     = "toryo.dev/task"
	noteRun      = "toryo.dev/generation"

	partSandbox = "sandbox"
	partHelper  = "helper"
)

// ownerLabel is short and has no letters that labels do not.
func ownerLabel(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:16])
}

func newPodName() string { return "toryo-" + strings.ToLower(rand.Text()[:16]) }

// newUser is a user that no other pod has, nor the machine: pods of one machine
// cannot touch each other's processes and files then, and the kernel can count
// each one's processes.
func newUser() int64 {
	const first, span = 1 << 20, 1 << 30
	number, err := rand.Int(rand.Reader, big.NewInt(span))
	if err != nil {
		panic(err) // there is no randomness, which the standard library does not survive either
	}
	return first + number.Int64()
}

// draft is a pod that is being described.
type draft struct {
	name            string
	labels, notes   map[string]string
	spec, container object
	volumes, mounts []object
}

// manifest is the whole description.
func (d *draft) manifest() object {
	d.container["volumeMounts"] = d.mounts
	d.spec["volumes"], d.spec["containers"] = d.volumes, []object{d.container}
	return object{"apiVersion": "v1", "kind": "Pod", "spec": d.spec, "metadata": object{"name": d.name, "annotations": d.notes, "labels": d.labels}}
}

// sandboxPod describes the pod of a sandbox.
func (e *Engine) sandboxPod(name string, spec sandbox.Spec, source string) (*draft, error) {
	arguments, err := guest.Arguments(guest.Options{
		Home: sandbox.HomePath, Workspace: sandbox.WorkspacePath, State: sandbox.HomePath + "/.toryo",
		OwnProcesses: true, CountUser: e.config.User == 0, Memory: spec.Limits.Memory, Processes: spec.Limits.Processes, Disk: spec.Limits.Disk,
		Proxy: proxyAddress, Inherit: true, Socket: guestSocket, Patience: e.config.Patience,
		Leave: e.config.Leave, Snapshots: snapshotPath, Source: sourcePath,
	})
	if err != nil {
		return nil, err
	}
	command := append([]string{guestPath}, arguments...)
	if e.config.GuestImage == "" {
		command = append([]string{"sh", "-c", awaitScript}, command...)
	}
	made := e.pod(name, spec.Owner, partSandbox, e.container(spec.Image, command))
	made.container["resources"] = e.resources(spec.Limits)
	made.notes[noteTask], made.notes[noteRun] = spec.Task, strconv.FormatInt(spec.Generation, 10)
	made.labels[labelNetwork] = e.networkLabel(spec.Network)
	e.mount(made, spec.Limits.Disk)
	if e.config.Claim != "" {
		e.mountClaim(made, source)
	}
	return made, nil
}

const (
	// awaitScript waits for the guest's program, which comes in when the pod runs, and becomes it.
	// The program is whole when its name is there. Reading from a pipe takes no processor time;
	// where the image cannot make one, the file is waited for.
	awaitScript = `mkfifo "$0.come" 2>/dev/null; { read -r line <"$0.come"; } 2>/dev/null; until [ -x "$0" ]; do sleep 0.05; done; exec "$0" "$@"`

	// installScript takes the program from its input, says so with a line and becomes the relay
	// of the guest that begins. It has the pipe open in both directions, so that it waits for
	// nobody, and until its end, so that the line in it is read whenever the other comes to that.
	// Is there no pipe yet, it leaves a file with the line in its place.
	installScript = `exec 9<>"$0.come" && head -c "$1" >"$0.$$" && [ "$(wc -c <"$0.$$")" -eq "$1" ] && chmod 755 "$0.$$" && mv "$0.$$" "$0" && echo >&9 && echo && shift && exec "$0" "$@"`
)

func (e *Engine) container(image string, command []string) object {
	return object{
		"name": containerName, "image": image, "imagePullPolicy": e.config.PullPolicy, "command": command, "workingDir": "/",
		"securityContext": object{
			"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": !e.config.WritableRoot,
			"capabilities": object{"drop": []string{"ALL"}},
		},
	}
}

// pod is what all pods of ours have in common: as little as a pod can have.
func (e *Engine) pod(name, owner, part string, container object) *draft {
	c := e.config
	user := c.User
	if user == 0 {
		user = newUser()
	}
	spec := object{
		"restartPolicy": "Never", "automountServiceAccountToken": false, "enableServiceLinks": false, "hostname": "toryo",
		"activeDeadlineSeconds": seconds(c.Deadline), "terminationGracePeriodSeconds": 1,
		"securityContext": object{
			"runAsNonRoot": true, "runAsUser": user, "runAsGroup": user, "fsGroup": user, "fsGroupChangePolicy": "OnRootMismatch",
			"seccompProfile": object{"type": "RuntimeDefault"},
		},
	}
	if c.RuntimeClass != "" {
		spec["runtimeClassName"] = c.RuntimeClass
	}
	if len(c.NodeSelector) > 0 {
		spec["nodeSelector"] = c.NodeSelector
	}
	if len(c.Tolerations) > 0 {
		spec["tolerations"] = c.Tolerations
	}
	if len(c.PullSecrets) > 0 {
		var secrets []object
		for _, secret := range c.PullSecrets {
			secrets = append(secrets, object{"name": secret})
		}
		spec["imagePullSecrets"] = secrets
	}
	return &draft{
		name: name, spec: spec, container: container, notes: map[string]string{noteOwner: owner},
		labels: map[string]string{labelOwner: ownerLabel(owner), labelPart: part, labelNetwork: string(sandbox.NoNetwork), "app.kubernetes.io/managed-by": "toryo"},
	}
}

// spareDisk lets the guest see that the disk is full before the cluster evicts the pod
// for it.
const spareDisk = 256 << 20

// spareMemory is the part of the memory limit that a pod may take above it. The guest, the
// relay and what is known of the files of a workspace that is copied are in the pod too.
const spareMemory = 8

func (e *Engine) resources(limits sandbox.Limits) object {
	memory := limits.Memory + max(sandbox.SpareMemory, limits.Memory/spareMemory)
	disk := limits.Disk + max(spareDisk, limits.Disk/4)
	return object{
		"requests": object{
			"cpu": cores(min(e.config.CPURequest, limits.CPUs)), "memory": strconv.FormatInt(min(e.config.MemoryRequest, memory), 10),
			"ephemeral-storage": strconv.FormatInt(min(spareDisk, disk), 10),
		},
		"limits": object{"cpu": cores(limits.CPUs), "memory": strconv.FormatInt(memory, 10), "ephemeral-storage": strconv.FormatInt(disk, 10)},
	}
}

func cores(number float64) string { return fmt.Sprintf("%dm", int64(number*1000)) }

// mount gives the pod its folders: they are new, and go with it.
func (e *Engine) mount(made *draft, disk int64) {
	most := strconv.FormatInt(disk+max(spareDisk, disk/4), 10)
	for name, at := range map[string]string{"workspace": sandbox.WorkspacePath, "home": sandbox.HomePath, "tmp": "/tmp"} {
		made.volumes = append(made.volumes, object{"name": name, "emptyDir": object{"sizeLimit": most}})
		made.mounts = append(made.mounts, object{"name": name, "mountPath": at})
	}
	made.volumes = append(made.volumes, object{"name": "guest", "emptyDir": object{}})
	made.mounts = append(made.mounts, object{"name": "guest", "mountPath": guestFolder, "readOnly": e.config.GuestImage != ""})
	if e.config.GuestImage == "" {
		return
	}
	installing := e.container(e.config.GuestImage, nil)
	delete(installing, "command") // the image's own
	installing["name"], installing["args"] = "install", guest.InstallArguments(guestPath)
	installing["volumeMounts"] = []object{{"name": "guest", "mountPath": guestFolder}}
	installing["resources"] = littleResources()
	made.spec["initContainers"] = []object{installing}
}

// littleResources are enough for what only begins and ends.
func littleResources() object {
	return object{"requests": object{"cpu": "10m", "memory": "32Mi"}, "limits": object{"cpu": "1", "memory": "256Mi"}}
}

// mountClaim gives the pod a folder of its own on the claim, or the one that it
// starts from to read: what was restored is not kept again.
func (e *Engine) mountClaim(made *draft, source string) {
	made.volumes = append(made.volumes, object{"name": "claim", "persistentVolumeClaim": object{"claimName": e.config.Claim}})
	mount := object{"name": "claim", "mountPath": snapshotPath, "subPath": made.name}
	if source != "" {
		mount = object{"name": "claim", "mountPath": sourcePath, "subPath": source, "readOnly": true}
	}
	made.mounts = append(made.mounts, mount)
}

// pod is what we read of one.
type pod struct {
	Metadata struct {
		Name            string            `json:"name"`
		UID             string            `json:"uid"`
		ResourceVersion string            `json:"resourceVersion"`
		Labels          map[string]string `json:"labels"`
		Created         time.Time         `json:"creationTimestamp"`
		Deleted         *time.Time        `json:"deletionTimestamp"`
		Annotations     map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Node string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		Phase      string            `json:"phase"`
		Reason     string            `json:"reason"`
		Message    string            `json:"message"`
		IP         string            `json:"podIP"`
		HostIP     string            `json:"hostIP"`
		Conditions []condition       `json:"conditions"`
		First      []containerStatus `json:"initContainerStatuses"`
		Containers []containerStatus `json:"containerStatuses"`
	} `json:"status"`
}

type condition struct {
	Type, Status, Reason, Message string
}

type containerStatus struct {
	ImageID string `json:"imageID"`
	Ready   bool   `json:"ready"`
	State   struct {
		Waiting *struct {
			Reason, Message string
		} `json:"waiting"`
		Running *struct {
			Started time.Time `json:"startedAt"`
		} `json:"running"`
		Terminated *struct {
			Reason, Message string
			ExitCode        int `json:"exitCode"`
		} `json:"terminated"`
	} `json:"state"`
}

// running reports whether the sandbox's container runs.
func (p pod) running() bool {
	return p.Status.Phase == "Running" && len(p.Status.Containers) > 0 && p.Status.Containers[0].State.Running != nil && p.Metadata.Deleted == nil
}

// unschedulable reports whether no node has room for the pod.
func (p pod) unschedulable() bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c condition) bool {
		return c.Type == "PodScheduled" && c.Status == "False" && c.Reason == "Unschedulable"
	})
}

// hopeless are the reasons for which a container will not start by itself.
var hopeless = []string{"ErrImageNeverPull", "InvalidImageName", "ImagePullBackOff", "ErrImagePull"}

// trouble says why a pod will not run, or run no more; nil if it may yet. What is
// pulled may come at the second try: only then is it given up.
func (p pod) trouble(image string) error {
	for _, status := range slices.Concat(p.Status.First, p.Status.Containers) {
		waiting := status.State.Waiting
		if waiting == nil {
			continue
		}
		switch {
		case waiting.Reason == "ErrImagePull":
		case slices.Contains(hopeless, waiting.Reason):
			err := task.Errorf(task.NotFound, "the image %s cannot be had in the cluster: %s: %s", image, waiting.Reason, waiting.Message).
				WithHint("name another image for the environment, or add a pull secret with sandbox.kubernetes.pull_secrets")
			return sandbox.WithTextReason(err, waiting.Message)
		case strings.HasPrefix(waiting.Reason, "Create") || waiting.Reason == "RunContainerError":
			return sandbox.WithTextReason(task.Errorf(task.Invalid, "the container cannot be made: %s: %s", waiting.Reason, waiting.Message), waiting.Message)
		}
	}
	return p.end()
}

// end says how a pod ended; nil if it did not.
func (p pod) end() error {
	for _, status := range slices.Concat(p.Status.First, p.Status.Containers) {
		if ended := status.State.Terminated; ended != nil && ended.Reason == "OOMKilled" {
			return &lostError{sandbox.MemoryLimit, sandbox.ErrOutOfMemory.Error()}
		}
	}
	switch {
	case p.Status.Reason == "Evicted" && strings.Contains(p.Status.Message, "storage"):
		return &lostError{sandbox.DiskLimit, "the pod was evicted: " + p.Status.Message}
	case p.Status.Reason == "Evicted" || p.Status.Reason == "Preempting" || p.Status.Reason == "Terminated":
		return &lostError{sandbox.NoLimit, "the pod was evicted: " + p.Status.Message}
	case p.Status.Reason == "DeadlineExceeded":
		return &lostError{sandbox.NoLimit, "the pod ran for longer than sandbox.kubernetes.deadline allows"}
	case p.Status.Reason == "NodeLost" || p.Status.Phase == "Unknown":
		return &lostError{sandbox.NoLimit, "the node " + p.Spec.Node + " is gone, and the pod with it"}
	case p.Status.Phase == "Failed" || p.Status.Phase == "Succeeded":
		return &lostError{sandbox.NoLimit, "the pod ended: " + p.ended()}
	case p.Metadata.Deleted != nil:
		return &lostError{sandbox.NoLimit, "the pod is being deleted, by somebody else or with its node"}
	}
	return nil
}

func (p pod) ended() string {
	for _, status := range slices.Concat(p.Status.First, p.Status.Containers) {
		if ended := status.State.Terminated; ended != nil && (ended.ExitCode != 0 || ended.Message != "") {
			return strings.TrimSpace(fmt.Sprintf("%s, exit code %d %s", ended.Reason, ended.ExitCode, ended.Message))
		}
	}
	return strings.TrimSpace(p.Status.Phase + " " + p.Status.Reason + " " + p.Status.Message)
}

// pending says what a pod waits for.
func (p pod) pending() string {
	for _, status := range slices.Concat(p.Status.First, p.Status.Containers) {
		if waiting := status.State.Waiting; waiting != nil && waiting.Message != "" {
			return waiting.Reason + ": " + waiting.Message
		}
	}
	for _, condition := range p.Status.Conditions {
		if condition.Status == "False" && condition.Message != "" && condition.Type == "PodScheduled" {
			return condition.Reason + ": " + condition.Message
		}
	}
	return "its phase is " + p.Status.Phase
}

// lostError says why a sandbox is gone, and for which limit if it was one.
type lostError struct {
	limit  sandbox.Limit
	reason string
}

func (l *lostError) Error() string { return l.reason }

// Is reports whether the target is the reason.
func (l *lostError) Is(target error) bool {
	switch l.limit {
	case sandbox.MemoryLimit:
		return target == sandbox.ErrOutOfMemory
	case sandbox.DiskLimit:
		return target == sandbox.ErrExhausted
	default:
		return false
	}
}
