package environment

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"golang.org/x/mod/modfile"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

func parsePackageJSON(content []byte, into *manifest) error {
	var file struct {
		Dependencies     map[string]any    `json:"dependencies"`
		DevDependencies  map[string]any    `json:"devDependencies"`
		PeerDependencies map[string]any    `json:"peerDependencies"`
		Engines          any               `json:"engines"`
		Scripts          map[string]string `json:"scripts"`
		PackageManager   string            `json:"packageManager"`
		Main             any               `json:"main"`
		Bin              any               `json:"bin"`
		Exports          any               `json:"exports"`
		Module           any               `json:"module"`
		Files            any               `json:"files"`
		Workspaces       any               `json:"workspaces"`
		Private          any               `json:"private"`
	}
	if err := json.Unmarshal(bytes.TrimPrefix(content, []byte("\ufeff")), &file); err != nil {
		return err
	}
	into.add(true, sortedKeys(file.Dependencies)...)
	into.add(false, sortedKeys(file.DevDependencies)...)
	into.add(false, sortedKeys(file.PeerDependencies)...)
	into.product = file.Main != nil || file.Bin != nil || file.Exports != nil || file.Workspaces != nil || file.Module != nil || file.Files != nil
	into.private = file.Private == true
	into.addScripts(file.Scripts)
	if file.Workspaces != nil {
		into.addFact("workspaces", "")
		into.members.declare(listOfWorkspaces(file.Workspaces)...)
	}
	worked := slices.ContainsFunc([]string{"start", "dev", "serve", "build", "test"}, func(name string) bool { return file.Scripts[name] != "" })
	into.tools = into.runtime == 0 && !into.product && !worked
	if engines, isMap := file.Engines.(map[string]any); isMap {
		if version, isText := engines["node"].(string); isText {
			into.setVersion(version)
		}
	}
	if name, _, named := strings.Cut(file.PackageManager, "@"); named {
		into.manager = name
	}
	return nil
}

// addScripts records which scripts there are: one that runs tests, and one that
// starts the program.
func (m *manifest) addScripts(scripts map[string]string) {
	if scripts["start"] != "" {
		m.addFact("start", "")
	}
	if test := scripts["test"]; test != "" && !strings.Contains(test, "no test specified") {
		m.addFact("script", "test")
		m.addFact("test", "")
		return
	}
	for _, name := range []string{"test:unit", "unit", "tests", "test:ci", "test:all", "test-unit", "test:run"} {
		if scripts[name] != "" {
			m.addFact("script", name)
		}
	}
}

func parsePom(content []byte, into *manifest) error {
	var file struct {
		Dependencies []struct {
			Group    string `xml:"groupId"`
			Artifact string `xml:"artifactId"`
			Scope    string `xml:"scope"`
		} `xml:"dependencies>dependency"`
		Modules    []string `xml:"modules>module"`
		Properties struct {
			Release string `xml:"maven.compiler.release"`
			Source  string `xml:"maven.compiler.source"`
			Java    string `xml:"java.version"`
		} `xml:"properties"`
	}
	decoder := xml.NewDecoder(bytes.NewReader(content))
	decoder.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	if err := decoder.Decode(&file); err != nil {
		return err
	}
	for _, dependency := range file.Dependencies {
		into.add(dependency.Scope != "test", dependency.Group+":"+dependency.Artifact)
	}
	into.product = true
	if len(file.Modules) > 0 {
		into.members.declare(file.Modules...)
	}
	for _, version := range []string{file.Properties.Release, file.Properties.Java, file.Properties.Source} {
		if version != "" && !strings.HasPrefix(version, "$") {
			into.setVersion(version)
		}
	}
	return nil
}

var (
	gradleDependency = lazyregexp.New(`(?m)^\s*(api|implementation|compile|runtimeOnly|compileOnly|testImplementation|testCompile|annotationProcessor|kapt)\s*\(?\s*(?:['"]([^'"]+)['"]|(libs\.[A-Za-z0-9_.]+))`)
	gradleVersion    = lazyregexp.New(`(?:sourceCompatibility\s*=\s*['"]?(?:JavaVersion\.VERSION_)?|languageVersion(?:\s*=\s*|\.set\()JavaLanguageVersion\.of\(|jvmToolchain\()\s*['"]?([0-9._]+)`)
)

// parseGradle looks for the usual notations. A build script is a program; it is
// never run here.
func parseGradle(content []byte, into *manifest) error {
	into.product = true
	for _, found := range gradleDependency.FindAllSubmatch(content, -1) {
		into.add(!strings.HasPrefix(string(found[1]), "test"), string(found[2])+string(found[3]))
	}
	if found := gradleVersion.FindSubmatch(content); found != nil {
		into.setVersion(strings.ReplaceAll(string(found[1]), "_", "."))
	}
	return nil
}

func parseGoMod(content []byte, into *manifest) error {
	_, strict := modfile.Parse("go.mod", content, nil)
	file, err := modfile.ParseLax("go.mod", content, nil)
	if err != nil {
		return err
	}
	into.product = true
	for _, requirement := range file.Require {
		into.add(!requirement.Indirect, requirement.Mod.Path)
	}
	if file.Go != nil {
		into.setVersion(file.Go.Version)
	}
	return strict
}

func parseGoWork(content []byte, into *manifest) error {
	file, err := modfile.ParseWork("go.work", content, nil)
	if err != nil {
		return err
	}
	if file.Go != nil {
		into.setVersion(file.Go.Version)
	}
	for _, use := range file.Use {
		into.members.declare(use.Path)
	}
	return nil
}

func parseCargo(content []byte, into *manifest) error {
	var file struct {
		Dependencies      map[string]any `toml:"dependencies"`
		DevDependencies   map[string]any `toml:"dev-dependencies"`
		BuildDependencies map[string]any `toml:"build-dependencies"`
		Workspace         *struct {
			Members      []string       `toml:"members"`
			Exclude      []string       `toml:"exclude"`
			Dependencies map[string]any `toml:"dependencies"`
			Package      map[string]any `toml:"package"`
		} `toml:"workspace"`
		Package map[string]any `toml:"package"`
	}
	if err := toml.Unmarshal(content, &file); err != nil {
		return err
	}
	into.add(true, sortedKeys(file.Dependencies)...)
	into.add(false, sortedKeys(file.DevDependencies)...)
	into.add(false, sortedKeys(file.BuildDependencies)...)
	into.product = file.Package != nil
	abouts := []map[string]any{file.Package}
	if file.Workspace != nil {
		into.add(true, sortedKeys(file.Workspace.Dependencies)...)
		into.addFact("members", "")
		// What lies below a workspace belongs to it, or Cargo refuses to build it.
		into.members.declare(append([]string{"**"}, file.Workspace.Members...)...)
		into.members.leaveOut(file.Workspace.Exclude...)
		abouts = append(abouts, file.Workspace.Package)
	}
	for _, about := range abouts {
		if version, isText := about["rust-version"].(string); isText {
			into.setVersion(version)
		}
	}
	return nil
}

// parseRustToolchain reads both forms: a table, and a bare name.
func parseRustToolchain(content []byte, into *manifest) error {
	var file struct {
		Toolchain struct {
			Channel string `toml:"channel"`
		} `toml:"toolchain"`
	}
	if !bytes.Contains(content, []byte("[toolchain]")) {
		return parseVersionFile(content, into)
	}
	err := toml.Unmarshal(content, &file)
	into.setVersion(file.Toolchain.Channel)
	return err
}

var (
	gem         = lazyregexp.New(`(?m)^\s*(?:gem|\w+\.add(?:_runtime|_development)?_dependency)[\s(]+['"]([^'"]+)['"]`)
	gemRuby     = lazyregexp.New(`(?m)^\s*(?:ruby|\w+\.required_ruby_version\s*=)\s*['"]([^'"]+)['"]`)
	swiftUses   = lazyregexp.New(`\.package\([^)]*url:\s*"([^"]+)"`)
	swiftTools  = lazyregexp.New(`swift-tools-version:\s*([0-9.]+)`)
	mixPackage  = lazyregexp.New(`\{\s*:([a-z0-9_]+)\s*,\s*(?:"[^"]*"|[a-z]+:)`)
	mixRequires = lazyregexp.New(`elixir:\s*"([^"]+)"`)
)

func parseGemfile(content []byte, into *manifest) error {
	for _, found := range gem.FindAllSubmatch(content, -1) {
		into.add(true, string(found[1]))
	}
	if found := gemRuby.FindSubmatch(content); found != nil {
		into.setVersion(string(found[1]))
	}
	if into.mentions("rspec") {
		into.addFact("rspec", "")
	}
	return nil
}

func parseSwift(content []byte, into *manifest) error {
	for _, found := range swiftUses.FindAllSubmatch(content, -1) {
		into.add(true, string(found[1]))
	}
	if found := swiftTools.FindSubmatch(content); found != nil {
		into.setVersion(string(found[1]))
	}
	return nil
}

func parseMix(content []byte, into *manifest) error {
	into.product = true
	for _, found := range mixPackage.FindAllSubmatch(content, -1) {
		into.add(true, string(found[1]))
	}
	if found := mixRequires.FindSubmatch(content); found != nil {
		into.setVersion(string(found[1]))
	}
	return nil
}

func parseComposer(content []byte, into *manifest) error {
	var file struct {
		Require    map[string]string `json:"require"`
		RequireDev map[string]string `json:"require-dev"`
		Scripts    map[string]any    `json:"scripts"`
	}
	if err := json.Unmarshal(bytes.TrimPrefix(content, []byte("\ufeff")), &file); err != nil {
		return err
	}
	into.setVersion(file.Require["php"])
	delete(file.Require, "php")
	into.add(true, sortedKeys(file.Require)...)
	into.add(false, sortedKeys(file.RequireDev)...)
	into.product = len(file.Require) > 0
	if file.Scripts["test"] != nil {
		into.test = "composer test"
	}
	if into.mentions("pestphp/pest") {
		into.addFact("pest", "")
	}
	return nil
}

func parseProject(content []byte, into *manifest) error {
	var file struct {
		References []struct {
			Include string `xml:"Include,attr"`
		} `xml:"ItemGroup>PackageReference"`
		Framework string `xml:"PropertyGroup>TargetFramework"`
	}
	err := xml.Unmarshal(bytes.TrimPrefix(content, []byte("\ufeff")), &file)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, reference := range file.References {
		into.add(true, reference.Include)
	}
	into.setVersion(file.Framework)
	return nil
}

func parsePubspec(content []byte, into *manifest) error {
	var file struct {
		Dependencies    map[string]any    `yaml:"dependencies"`
		DevDependencies map[string]any    `yaml:"dev_dependencies"`
		Environment     map[string]string `yaml:"environment"`
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		return err
	}
	into.add(true, sortedKeys(file.Dependencies)...)
	into.add(false, sortedKeys(file.DevDependencies)...)
	into.setVersion(file.Environment["sdk"])
	return nil
}

func parseGlobalJSON(content []byte, into *manifest) error {
	var file struct {
		SDK struct {
			Version string `json:"version"`
		} `json:"sdk"`
	}
	err := json.Unmarshal(bytes.TrimPrefix(content, []byte("\ufeff")), &file)
	into.setVersion(file.SDK.Version)
	return err
}

// parseDeno reads JSON that may have comments.
func parseDeno(content []byte, into *manifest) error {
	var file struct {
		Imports map[string]string `json:"imports"`
		Tasks   map[string]any    `json:"tasks"`
	}
	plain, err := hujson.Standardize(content)
	if err == nil {
		err = json.Unmarshal(plain, &file)
	}
	if err != nil {
		return err
	}
	into.add(true, sortedKeys(file.Imports)...)
	into.product = len(file.Tasks) > 0
	if file.Tasks["test"] != nil {
		into.test = "deno task test"
	}
	return nil
}
