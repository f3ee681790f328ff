#!/bin/sh
# Before the files of the package go. Debian says remove, RPM 0; an upgrade says otherwise.
set -e

case ${1:-} in
remove | 0)
  if [ -d /run/systemd/system ]; then
    systemctl disable --now toryo.service toryo-agent.service toryo-up.service || true
  fi
  ;;
esac
