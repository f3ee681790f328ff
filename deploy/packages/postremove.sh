#!/bin/sh
# After the files of the package are gone. The data in /var/lib/toryo and the user that owns
# them stay, whatever is removed: they are not the package's to delete.
set -e

if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
