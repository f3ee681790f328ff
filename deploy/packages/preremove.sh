#!/bin/sh
# Before the files of the package go. Debian says remove, RPM 0; an upgrade says otherwise. Units
# that somebody has put there are not the package's.
set -e

case ${1:-} in
remove | 0)
  if [ -d /run/systemd/system ]; then
    for unit in toryo.service toryo-agent.service toryo-up.service; do
      [ -e "/etc/systemd/system/$unit" ] || systemctl disable --now "$unit" || true
    done
  fi
  ;;
esac
