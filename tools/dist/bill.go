package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// bill is a bill of materials as CycloneDX has it, as far as releases use it.
type bill struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Serial       string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Tools     tools     `json:"tools"`
	Component component `json:"component"`
}

type tools struct {
	Components []component `json:"components"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref,omitempty"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PackageURL string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Licenses   []licensed `json:"licenses,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type licensed struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

const modulePath = "github.com/toryo-dev/toryo"

// writeBills writes a bill of materials for each program, and for each image one that has
// its Debian packages too.
func (r *release) writeBills(context.Context) error {
	for _, t := range r.targets {
		found, err := r.programs[t].modules()
		if err != nil {
			return err
		}
		modules := r.modulesOf(found)
		digest := digestOf(r.programs[t].content)
		if err := r.addBill(t.String(), "application", digest, modules); err != nil {
			return err
		}
		image := r.named("image_" + t.String() + ".tar")
		if sum := r.digests()[image]; sum != "" {
			if err := r.addBill("image_"+t.String(), "container", sum, slices.Concat(modules, packagesOf(r.debian[t.arch]))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *release) addBill(of, kind, digest string, parts []component) error {
	text, err := json.MarshalIndent(r.bill(kind, digest, parts), "", "  ")
	if err != nil {
		return err
	}
	return r.add(r.named(of+".cdx.json"), append(text, '\n'))
}

func (r *release) bill(kind, digest string, parts []component) bill {
	purl := "pkg:golang/" + modulePath + "@v" + r.version
	main := component{Type: kind, Ref: purl, Name: "toryo", Version: r.version, PackageURL: purl,
		Hashes: []hash{{"SHA-256", digest}}, Licenses: licence("Apache-2.0"), Properties: []property{{"vcs:revision", r.commit}}}
	needs := dependency{Ref: purl}
	all := []dependency{}
	for _, part := range parts {
		needs.DependsOn = append(needs.DependsOn, part.Ref)
		all = append(all, dependency{Ref: part.Ref})
	}
	return bill{
		Format: "CycloneDX", Spec: "1.6", Serial: "urn:uuid:" + uuid.NewHash(sha256.New(), uuid.NameSpaceURL, []byte(kind+" "+digest), 8).String(), Version: 1,
		Metadata: metadata{Timestamp: r.made.Format(time.RFC3339), Component: main,
			Tools: tools{[]component{{Type: "application", Name: "toryo/tools/dist", Version: r.version}}}},
		Components: parts, Dependencies: append([]dependency{needs}, all...),
	}
}

func licence(id string) []licensed {
	if id == "" {
		return nil
	}
	var one licensed
	one.License.ID = id
	return []licensed{one}
}

// modulesOf are the Go modules in a program, and the standard library. A checksum of a
// module is of its files one by one, not of an archive, so that it is no hash here.
func (r *release) modulesOf(found []*debug.Module) []component {
	version := strings.TrimPrefix(r.golang, "go")
	standard := component{Type: "library", Ref: "pkg:golang/std@" + version, Name: "std", Version: version, PackageURL: "pkg:golang/std@" + version, Licenses: licence("BSD-3-Clause")}
	parts := []component{standard}
	for _, module := range found {
		purl := modulePurl(module)
		parts = append(parts, component{Type: "library", Ref: purl, Name: module.Path, Version: module.Version, PackageURL: purl,
			Licenses: licence(r.terms[module.Path].id), Properties: []property{{"go:sum", module.Sum}}})
	}
	return parts
}

func modulePurl(module *debug.Module) string {
	return "pkg:golang/" + escapePurl(module.Path) + "@" + escapePurl(module.Version)
}

// escapePurl escapes a part of a package URL, in which slashes part names.
func escapePurl(text string) string {
	parts := strings.Split(text, "/")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(url.PathEscape(part), ":", "%3A"), "+", "%2B")
	}
	return strings.Join(parts, "/")
}

// packagesOf are the Debian packages of an image.
func packagesOf(packages []debianPackage) []component {
	var parts []component
	for _, one := range packages {
		parts = append(parts, component{Type: "library", Ref: one.purl(), Name: one.name, Version: one.version, PackageURL: one.purl(), Hashes: []hash{{"SHA-256", one.digest}}})
	}
	return parts
}
