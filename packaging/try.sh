#!/bin/bash
# Installs a package in a fresh Debian and uses it as its users do: `packaging/try.sh PACKAGE.deb`.
# It needs root, mmdebstrap or debootstrap, Debian's packages, and /dev/fuse. With TRY_ROOT=DIR the
# Debian is kept in DIR for the next time.
set -euo pipefail
package=$(realpath "$1")
inside=$(dirname "$(realpath "$0")")/try-inside.sh
with=man-db,bash-completion,fuse3,systemd,ca-certificates
root=${TRY_ROOT:-}
if [ -z "$root" ]; then
    root=$(mktemp -d)
    trap 'rm -rf --one-file-system "$root"' EXIT
fi
if [ ! -e "$root/etc/debian_version" ]; then
    echo "== a fresh Debian in $root"
    if command -v mmdebstrap >/dev/null; then
        mmdebstrap --quiet --variant=apt --include="$with" bookworm "$root"
    else
        debootstrap --variant=minbase --include="$with" bookworm "$root" >/dev/null
    fi
fi
cp "$package" "$root/tmp/oblivio.deb"
cp "$inside" "$root/tmp/inside.sh"
cp /etc/resolv.conf "$root/etc/resolv.conf"
# A namespace of its own: its mounts end with it, and nothing outside sees them.
unshare --mount --pid --fork bash -euc '
    mount --make-rprivate /
    mount -t proc proc "$0/proc"
    mount -t tmpfs tmp "$0/dev"
    ln -s /proc/self/fd "$0/dev/fd"
    for device in null zero random urandom fuse tty; do
        touch "$0/dev/$device"
        mount --bind "/dev/$device" "$0/dev/$device"
    done
    exec chroot "$0" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive HOME=/root bash /tmp/inside.sh' "$root"
