#!/bin/sh
# After the files of the package are there: a user for the server, and its data.
set -e

# A unit that somebody has put there goes before that of the package. Its user may be one that
# systemd makes for as long as it runs, and its data are that user's.
by_hand() {
  [ -e "/etc/systemd/system/$1" ]
}

if by_hand toryo.service || by_hand toryo-up.service; then
  echo "toryo: the unit of the server in /etc/systemd/system stays in place of that of this package, so that no user was made and" >&2
  echo "toryo: it is not restarted. To change over: stop it, remove that file, install this package again." >&2
else
  if ! getent passwd toryo >/dev/null; then
    group=--user-group
    if getent group toryo >/dev/null; then
      group=--gid=toryo
    fi
    useradd --system "$group" --home-dir /var/lib/toryo --no-create-home --shell /usr/sbin/nologin toryo
  fi
  # A folder that is there stays as it is: systemd gives it to the user of the unit.
  if [ ! -e /var/lib/toryo ] && [ ! -L /var/lib/toryo ]; then
    install --directory --owner=toryo --group=toryo --mode=0700 /var/lib/toryo
  fi
fi

if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
  # After an upgrade what runs is the new program. Nothing is started for the first time:
  # there is no configuration yet.
  for unit in toryo.service toryo-agent.service toryo-up.service; do
    by_hand "$unit" || systemctl try-restart "$unit" || true
  done
fi
