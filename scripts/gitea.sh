#!/bin/sh
# Builds the Gitea server that the tests run against, once, and keeps it in the
# cache. The last line of the output is the folder to name in TORYO_TEST_GITEA.
#
# Gitea is built from its Go module and without its front end: the tests speak
# to its API, to git over HTTP and to its webhooks only. The build takes about
# ten minutes of processor time and 1.3 GB of modules; the result is 150 MB.
set -eu

version=${GITEA_VERSION:-1.26.0}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/toryo-test
target=$cache/gitea-$version

if [ -x "$target/gitea" ] && [ -d "$target/static/templates" ]; then
	echo "$target"
	exit 0
fi

if ! command -v gcc >/dev/null; then
	echo "gitea.sh: gcc is missing; Gitea's SQLite driver needs it" >&2
	exit 1
fi

mkdir -p "$cache"
# Everything is made beside the target and moved there whole, so that a build
# that was cut short leaves nothing that looks finished.
making=$(mktemp -d "$cache/gitea-making.XXXXXX")
trap 'rm -rf "$making"' EXIT

# Outside of any module: this must not change ours.
source=$(cd "$making" && go mod download -json "code.gitea.io/gitea@v$version" |
	sed -n 's/.*"Dir": "\(.*\)",*/\1/p')
echo "gitea.sh: building Gitea $version; this happens once" >&2
go -C "$source" mod download >&2
CGO_ENABLED=1 nice -n 10 go -C "$source" build -buildvcs=false \
	-tags 'sqlite sqlite_unlock_notify' -ldflags '-s -w' -o "$making/gitea" .

mkdir "$making/static"
for part in options templates public; do
	cp -r "$source/$part" "$making/static/"
done
chmod -R u+w "$making/static"
chmod 0755 "$making"

rm -rf "$target"
mv "$making" "$target"
trap - EXIT
echo "$target"
