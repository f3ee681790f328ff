#!/bin/sh
# Gets what the forges that cannot run here have published about themselves, once,
# and keeps it in the cache. The last line of the output is the folder to name in
# TORYO_TEST_CONTRACTS:
#
#   npm/        GitHub's description of its REST and GraphQL interfaces, and
#               examples of its webhooks
#   gitlab/     answers of gitlab.com that were recorded
#   webhooks/   examples of the webhooks of GitLab and Gitea
set -eu

cache=${XDG_CACHE_HOME:-$HOME/.cache}/toryo-test
target=$cache/contracts-1

if [ -d "$target" ]; then
	echo "$target"
	exit 0
fi

mkdir -p "$cache"
# Everything is made beside the target and moved there whole, so that what was
# cut short leaves nothing that looks finished.
making=$(mktemp -d "$cache/contracts-making.XXXXXX")
trap 'rm -rf "$making"' EXIT

mkdir "$making/npm"
npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$making/npm" \
	@octokit/openapi@23.0.2 @octokit/webhooks-examples@7.6.1 @octokit/graphql-schema@15.26.1 >&2

# module PATH VERSION prints the folder of a Go module. Outside of any module:
# this must not change ours.
module() {
	(cd "$making" && go mod download -json "$1@$2") | sed -n 's/.*"Dir": "\(.*\)",*/\1/p'
}

forgejo=$(module codeberg.org/forgejo/forgejo v1.21.0-rc0.0.20241219112042-456d05998231)
cp -r "$forgejo/services/migrations/testdata/gitlab" "$making/gitlab"

mkdir "$making/webhooks"
client=$(module gitlab.com/gitlab-org/api/client-go/v2 v2.64.0)
cp -r "$client/testdata/webhooks" "$making/webhooks/gitlab"
examples=$(module github.com/go-playground/webhooks/v6 v6.4.0)
cp -r "$examples/testdata/gitlab" "$making/webhooks/gitlab-older"
cp -r "$examples/testdata/gitea" "$making/webhooks/gitea"

chmod -R u+w "$making"
chmod 0755 "$making"
mv "$making" "$target"
trap - EXIT
echo "$target"
