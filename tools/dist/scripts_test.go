package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/testkit"
)

// machine gives a script folders of its own for accounts, data and what runs, in the place of this
// machine's. In the place of systemctl is a command that says how it was called.
const machine = `set -eu
mount --make-rprivate /
for folder in etc lib run; do mkdir "$PWD/$folder"; done
cp /etc/login.defs /etc/nsswitch.conf /etc/ld.so.cache etc/
cp -a /etc/pam.d etc/ 2>/dev/null || true
for file in passwd group shadow gshadow; do sed '/^toryo:/d' "/etc/$file" >"etc/$file"; done
mkdir -p etc/systemd/system run/systemd/system bin
printf '#!/bin/sh\necho "systemctl $*"\n' >bin/systemctl
chmod 755 bin/systemctl
PATH=$PWD/bin:$PATH
mount --bind etc /etc
mount --bind lib /var/lib
mount --bind run /run
about() { getent passwd toryo | cut -d : -f 1,6,7 || true; stat --format '%n %U:%G %a' /var/lib/toryo 2>&1 || true; }
`

// The scripts of packages make a user and a folder once, change nothing that somebody has changed,
// and leave units alone that are not the package's.
func TestOnReleaseScripts(t *testing.T) {
	t.Parallel()
	testkit.Release(t)
	if os.Geteuid() != 0 {
		testkit.LeaveOut(t, "root, who installs packages,")
	}
	const (
		made     = "toryo:/var/lib/toryo:/usr/sbin/nologin\n/var/lib/toryo toryo:toryo 700\n"
		reload   = "systemctl daemon-reload\n"
		restarts = reload + "systemctl try-restart toryo.service\nsystemctl try-restart toryo-agent.service\nsystemctl try-restart toryo-up.service\n"
		nobody   = "stat: cannot statx '/var/lib/toryo': No such file or directory\n"
		others   = reload + "systemctl try-restart toryo-agent.service\nsystemctl try-restart toryo-up.service\n"
		disabled = "systemctl disable --now toryo.service\nsystemctl disable --now toryo-agent.service\nsystemctl disable --now toryo-up.service\n"
	)
	for name, one := range map[string]struct{ commands, want string }{
		"the first installation": {"sh $postinstall configure; about", restarts + made},
		"without systemd":        {"rm -r /run/systemd; sh $postinstall configure; about", made},
		"an upgrade keeps modes": {
			"sh $postinstall configure >/dev/null; chmod 750 /var/lib/toryo; sh $preremove upgrade 2; sh $postinstall configure 1; about",
			restarts + strings.Replace(made, "700", "750", 1),
		},
		"a group is there":  {"groupadd --system toryo; sh $postinstall configure; about", restarts + made},
		"units by hand":     {"touch /etc/systemd/system/toryo.service; sh $postinstall configure 2>/dev/null; about", others + nobody},
		"removed":           {"sh $postinstall configure >/dev/null; sh $preremove remove; about", disabled + made},
		"removed from RPM":  {"sh $preremove 0; sh $postremove 0", disabled + reload},
		"upgraded with RPM": {"sh $preremove 1", ""},
		"units by hand stay": {
			"touch /etc/systemd/system/toryo.service /etc/systemd/system/toryo-agent.service /etc/systemd/system/toryo-up.service; sh $preremove remove", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var environ []string
			for _, script := range []string{"postinstall", "preremove", "postremove"} {
				environ = append(environ, script+"="+filepath.Join(repository(t), filepath.FromSlash(packageFolder), script+".sh"))
			}
			said, err := output(t.Context(), t.TempDir(), append(environ, "LC_ALL=C"), "unshare", "--mount", "sh", "-c", machine+one.commands)
			if err != nil || string(said) != one.want {
				t.Errorf("%v: it says\n%swant\n%s", err, said, one.want)
			}
		})
	}
}
