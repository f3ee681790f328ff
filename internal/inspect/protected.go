package inspect

import "github.com/toryo-dev/toryo/internal/lazyregexp"

// group is a kind of protected file.
type group struct {
	patterns []string
	// words are how people call such files without naming one; see change.
	words []string
}

// groups are the files that run or decide with rights that whoever wrote the change does
// not have: on a build server, on the machine of everybody who checks the branch out, or
// about who has to review what.
var groups = []group{
	{
		patterns: []string{
			".github/workflows/**", ".github/actions/**", "action.yml", "action.yaml", ".github/dependabot.yml", ".github/dependabot.yaml",
			".gitlab-ci.yml", ".gitlab/**", ".gitea/workflows/**", ".forgejo/workflows/**",
			".circleci/**", "Jenkinsfile", "azure-pipelines.yml", "azure-pipelines.yaml", ".azure-pipelines/**", ".woodpecker*", ".woodpecker/**", ".drone.yml",
			".travis.yml", "bitbucket-pipelines.yml", ".buildkite/**", "appveyor.yml", ".appveyor.yml", "cloudbuild.yaml", "cloudbuild.yml", ".teamcity/**",
			".cirrus.yml", ".semaphore/**", ".tekton/**",
		},
		words: []string{
			"github actions", "gitlab ci", "gitea actions", "forgejo actions", "ci workflow", "ci workflows", "ci pipeline", "ci pipelines", "ci job", "ci jobs",
			"ci configuration", "ci config", "ci settings", "continuous integration", "workflow file", "workflow files",
			"ciワークフロー", "ci のワークフロー", "ciのワークフロー", "ci設定", "ci の設定", "ciの設定", "継続的インテグレーション",
		},
	},
	{
		patterns: []string{"CODEOWNERS"},
		words:    []string{"codeowners", "code owners", "code owner", "コードオーナー"},
	},
	{
		patterns: []string{".husky/**", ".githooks/**", ".pre-commit-config.yaml", ".pre-commit-config.yml", "lefthook.yml", "lefthook.yaml", ".lefthook.yml", ".lefthook.yaml", ".lefthook/**"},
		words:    []string{"git hook", "git hooks", "pre-commit hook", "pre-commit hooks", "pre-push hook", "husky", "lefthook", "git フック", "gitフック"},
	},
	{
		patterns: []string{".gitmodules"},
		words:    []string{"submodule", "submodules", "サブモジュール"},
	},
	{
		patterns: []string{".devcontainer/**", ".devcontainer.json", ".gitpod.yml"},
		words:    []string{"devcontainer", "dev container", "dev containers", "development container", "開発コンテナ"},
	},
	{
		patterns: []string{".vscode/tasks.json", ".vscode/launch.json", ".vscode/settings.json", ".idea/runConfigurations/**"},
	},
	{
		patterns: []string{".envrc", ".mise.toml", "mise.toml", ".tool-versions", ".claude/**", ".cursor/**", ".mcp.json"},
	},
}

// protection is a group that was made ready.
type protection struct {
	globs
	asked *lazyregexp.Regexp // texts that ask for a change of it; nil for none
}

var protections = func() []protection {
	all := make([]protection, 0, len(groups))
	for _, g := range groups {
		all = append(all, protection{compile(g.patterns), change(g.words)})
	}
	return all
}()

// builtIn lists the patterns of files that are protected by default.
func builtIn() []string {
	var all []string
	for _, g := range groups {
		all = append(all, g.patterns...)
	}
	return all
}

// registryFiles are those that say where packages come from.
var registryFiles = compile([]string{
	"package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", ".npmrc", ".yarnrc", ".yarnrc.yml", "bunfig.toml",
	"Cargo.lock", "**/.cargo/config", "**/.cargo/config.toml",
	"poetry.lock", "uv.lock", "pdm.lock", "Pipfile", "Pipfile.lock", "pip.conf", "pip.ini", "requirements*.txt", "constraints*.txt", "uv.toml",
	"Gemfile", "Gemfile.lock", "composer.lock", "auth.json", "nuget.config", "packages.lock.json",
})

// attributeFiles can have a file rewritten by a program when it is checked out.
var attributeFiles = compile([]string{".gitattributes"})
