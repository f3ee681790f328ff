package main

import (
	"context"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
)

// statement is one of in-toto about the files of a release, with provenance as SLSA has it.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     predicate  `json:"predicate"`
}

type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

type predicate struct {
	Definition struct {
		BuildType    string         `json:"buildType"`
		External     map[string]any `json:"externalParameters"`
		Internal     map[string]any `json:"internalParameters"`
		Dependencies []resource     `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	Details struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

const (
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://slsa.dev/provenance/v1"
	buildType     = builderID + "/v1"
)

// writeProvenance says what the files were made from, by whom and how. It has no times: the
// same build says the same again.
func (r *release) writeProvenance(context.Context) error {
	made := statement{Type: statementType, PredicateType: predicateType}
	for _, one := range sortedFiles(r.files) {
		made.Subject = append(made.Subject, resource{Name: one.name, Digest: map[string]string{"sha256": one.digest}})
	}
	systems := []string{}
	for _, t := range r.targets {
		systems = append(systems, t.os+"/"+t.arch)
	}
	definition := &made.Predicate.Definition
	definition.BuildType = buildType
	definition.External = map[string]any{"commit": r.commit, "version": r.version, "targets": systems, "image": r.image, "packages": r.packages}
	if r.origin != "" {
		definition.External["source"] = r.origin
	}
	definition.Internal = map[string]any{"go": r.golang, "environment": settings, "linkerFlags": r.linkerFlags(), "SOURCE_DATE_EPOCH": r.epoch()}
	made.Predicate.Details.Builder.ID = r.builder
	var err error
	if definition.Dependencies, err = r.materials(); err != nil {
		return err
	}
	text, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		return err
	}
	return r.add(r.named("provenance.json"), append(text, '\n'))
}

// materials are what the files were made from: the commit, Go modules, Debian packages, and
// the program that has made packages.
func (r *release) materials() ([]resource, error) {
	commit := resource{Name: "the commit", Digest: map[string]string{"gitCommit": r.commit}}
	if r.origin != "" {
		commit.URI = "git+" + r.origin + "@" + r.commit
	}
	all := []resource{commit}
	modules := map[string]*debug.Module{}
	if err := r.addPackager(modules); err != nil {
		return nil, err
	}
	for _, made := range r.programs {
		found, err := made.modules()
		if err != nil {
			return nil, err
		}
		for _, module := range found {
			modules[modulePurl(module)] = module
		}
	}
	for _, purl := range slices.Sorted(maps.Keys(modules)) {
		one := resource{URI: purl}
		if sum, found := strings.CutPrefix(modules[purl].Sum, "h1:"); found {
			bytes, err := base64.StdEncoding.DecodeString(sum)
			if err != nil {
				return nil, fmt.Errorf("the checksum of %s: %w", purl, err)
			}
			one.Digest = map[string]string{"dirHash1": hex.EncodeToString(bytes)}
		}
		all = append(all, one)
	}
	for _, arch := range slices.Sorted(maps.Keys(r.debian)) {
		for _, one := range r.debian[arch] {
			all = append(all, resource{URI: one.purl(), Name: one.file, Digest: map[string]string{"sha256": one.digest}})
		}
	}
	return all, nil
}

// addPackager adds the module of the program that has made the packages, if there are some.
func (r *release) addPackager(modules map[string]*debug.Module) error {
	if r.nfpm == "" {
		return nil
	}
	info, err := buildinfo.ReadFile(r.nfpm)
	if err != nil {
		return err
	}
	modules[modulePurl(&info.Main)] = &info.Main
	return nil
}
