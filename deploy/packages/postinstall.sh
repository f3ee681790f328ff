#!/bin/sh
# After the files of the package are there: a user for the server, and its data.
set -e

if ! getent passwd toryo >/dev/null; then
  useradd --system --user-group --home-dir /var/lib/toryo --no-create-home --shell /usr/sbin/nologin toryo
fi
install --directory --owner=toryo --group=toryo --mode=0700 /var/lib/toryo

if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
  # After an upgrade what runs is the new program. Nothing is started for the first time:
  # there is no configuration yet.
  systemctl try-restart toryo.service toryo-agent.service toryo-up.service || true
fi
