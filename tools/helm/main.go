// Program helm renders a chart as helm install would, for tests: they hold what comes out
// against the types of Kubernetes and apply it to a cluster.
//
//	helm RELEASE NAMESPACE CHART [VALUES]
//
// It prints the manifests. NOTES.txt, which is for people, goes to standard error.
package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1/util"
)

func main() {
	if err := render(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(arguments []string) error {
	if len(arguments) < 3 || len(arguments) > 4 {
		return errors.New("usage: helm RELEASE NAMESPACE CHART [VALUES]")
	}
	chart, err := loader.Load(arguments[2])
	if err != nil {
		return err
	}
	given := common.Values{}
	if len(arguments) == 4 {
		if given, err = common.ReadValuesFile(arguments[3]); err != nil {
			return err
		}
	}
	// The values are held against values.schema.json here.
	values, err := util.ToRenderValues(chart, given, common.ReleaseOptions{Name: arguments[0], Namespace: arguments[1], Revision: 1, IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		return err
	}
	files, err := engine.Engine{Strict: true}.Render(chart, values)
	if err != nil {
		return err
	}
	for name, text := range files {
		if path.Base(name) == "NOTES.txt" {
			fmt.Fprintln(os.Stderr, strings.TrimSpace(text))
			delete(files, name)
		}
	}
	// As helm install sends them: a namespace before what is in it.
	_, manifests, err := release.SortManifests(files, nil, release.InstallOrder)
	if err != nil {
		return err
	}
	for _, one := range manifests {
		fmt.Printf("---\n# %s\n%s\n", one.Name, strings.TrimSpace(one.Content))
	}
	return nil
}
