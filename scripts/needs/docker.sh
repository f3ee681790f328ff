#!/bin/sh
# Installs and starts a Docker Engine for the tests, with an image that is made
# here, without a container registry. Prints the variables that the tests need:
#
#   eval "$(scripts/needs/docker.sh)"
#
# Needs root, Debian's packages, and Go and Node.js on this machine: both are
# copied into the image. What was made is kept in the cache and used again.
# "docker.sh stop" stops the engine that this script started.
set -eu

cache=${XDG_CACHE_HOME:-$HOME/.cache}/toryo-test/docker
socket=$cache/docker.sock
image=toryo-test/base:1
say() { echo "docker.sh: $*" >&2; }

if [ "${1:-}" = stop ]; then
	[ -f "$cache/docker.pid" ] && kill "$(cat "$cache/docker.pid")" 2>/dev/null || true
	exit 0
fi

mkdir -p "$cache"
missing=
command -v dockerd >/dev/null || missing="$missing docker.io"
command -v debootstrap >/dev/null || missing="$missing debootstrap"
command -v iptables >/dev/null || missing="$missing iptables"
if [ -n "$missing" ]; then
	say "installing$missing"
	# shellcheck disable=SC2086 # one word each
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >"$cache/apt.log" 2>&1
fi

answers() { curl -sf --max-time 5 --unix-socket "$socket" http://docker/_ping >/dev/null 2>&1; }
if ! answers; then
	say "starting dockerd"
	# The tests' containers have no network but their own loopback, so neither a
	# bridge nor rules for packets are needed.
	nohup dockerd --host "unix://$socket" --data-root "$cache/data" --exec-root "$cache/exec" \
		--pidfile "$cache/docker.pid" --bridge=none --iptables=false >"$cache/dockerd.log" 2>&1 &
	tries=0
	until answers; do
		tries=$((tries + 1))
		[ "$tries" -lt 60 ] || { say "dockerd does not answer; see $cache/dockerd.log"; exit 1; }
		sleep 1
	done
fi

if ! curl -sf --unix-socket "$socket" "http://docker/images/$image/json" >/dev/null 2>&1; then
	root=$cache/root
	if [ ! -f "$cache/root.done" ]; then
		say "making the base system (a minute or two)"
		rm -rf "$root"
		mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -v security | head -n 1)
		# shellcheck disable=SC1091
		suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
		debootstrap --variant=minbase --include=git,ca-certificates,python3,python3-venv,python3-pip,libstdc++6,procps \
			"$suite" "$root" "$mirror" >"$cache/debootstrap.log" 2>&1
		rm -rf "$root/var/cache/apt/archives" "$root/var/lib/apt/lists"
		mkdir -p "$root/usr/local/bin" "$root/usr/local/lib/node_modules"
		cp -a "$(go env GOROOT)" "$root/usr/local/go"
		ln -s ../go/bin/go "$root/usr/local/bin/go"
		cp "$(readlink -f "$(command -v node)")" "$root/usr/local/bin/node"
		cp -a "$(npm root -g)/npm" "$root/usr/local/lib/node_modules/npm"
		ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
		ln -sf python3 "$root/usr/bin/python"
		cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
		touch "$cache/root.done"
	fi
	say "importing the image"
	tar -C "$root" -c . | curl -sf --unix-socket "$socket" -X POST -T - -H 'Content-Type: application/x-tar' \
		"http://docker/images/create?fromSrc=-&repo=${image%:*}&tag=${image#*:}" >"$cache/import.log"
fi

echo "export TORYO_TEST_DOCKER='unix://$socket'"
echo "export TORYO_TEST_DOCKER_IMAGE='$image'"
