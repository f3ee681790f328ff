// Program kubernetes is a whole Kubernetes in one file, for tests: each part of a
// cluster of one machine is a command of it, and so are kubectl and the making of
// images. scripts/kubernetes builds it and puts a cluster together.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// parts are the commands that Kubernetes brings.
var parts = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
}

func main() {
	if len(os.Args) < 2 {
		fail("name a part: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kubectl or image")
	}
	name := os.Args[1]
	os.Args = os.Args[1:] // each part reads its own
	switch name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "image":
		if err := writeImage(os.Args[1:]); err != nil {
			fail(err.Error())
		}
	default:
		part, known := parts[name]
		if !known {
			fail("there is no part " + name)
		}
		os.Exit(cli.Run(part()))
	}
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(1)
}
