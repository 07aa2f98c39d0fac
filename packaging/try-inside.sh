#!/bin/bash
# What packaging/try.sh does within the fresh Debian.
set -euo pipefail
step() { printf '== %s\n' "$1"; }
fail() { printf 'FAILED: %s\n' "$1"; exit 1; }
# Whether standard input has this text; it is read to its end, so that nobody writes to a closed pipe.
has() { local all; all=$(cat); [[ $all == *"$1"* ]] || fail "no '$1' in: $all"; }
free() { timeout 60 bash -c 'while pgrep -x oblivio >/dev/null; do sleep 0.1; done' || fail "it does not end"; }

step "apt install"
apt-get update -qq
apt-get install -y -qq procps /tmp/oblivio.deb >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; fail "apt install"; }
oblivio --version | has "oblivio "
readlink -f /sbin/mount.oblivio /sbin/mount.fuse.oblivio | sort -u | has /usr/bin/oblivio
dpkg --verify oblivio

step "manual pages"
mandb -q
for page in oblivio oblivio-mount oblivio-passphrase-add mount.oblivio mount.fuse.oblivio; do
    man --warnings "$page" 2>/tmp/warned | has "SYNOPSIS"
    [ ! -s /tmp/warned ] || fail "$page: $(cat /tmp/warned)"
done
man oblivio-mount | has "Use a volume as a directory, with any program"
apropos oblivio | has "oblivio-umount"

step "completion in bash"
bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader oblivio; complete -p oblivio' | has "-F _oblivio"
bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader oblivio
    COMP_WORDS=(oblivio mount --pass) COMP_CWORD=2; _oblivio oblivio --pass mount; echo "${COMPREPLY[@]}"' \
    | has "--passphrase-file"

step "a volume, mounted from /etc/fstab"
# What an earlier try has left.
rm -rf /etc/oblivio /srv/vault /root/.local /var/lib/oblivio
sed -i /oblivio/d /etc/fstab
! id alice >/dev/null 2>&1 || userdel --remove alice 2>/dev/null
mkdir -p /etc/oblivio /mnt/private
(umask 077; echo "correct horse battery staple" >/etc/oblivio/vault.pass)
oblivio init --quiet --size 1G --kdf-memory 32K --kdf-passes 1 --passphrase-file /etc/oblivio/vault.pass /srv/vault
echo "/srv/vault /mnt/private oblivio passphrase_file=/etc/oblivio/vault.pass,_netdev,nofail 0 0" >>/etc/fstab
mount -f /mnt/private
! findmnt /mnt/private || fail "mount -f mounted"
mount /mnt/private
findmnt -n -o SOURCE,FSTYPE /mnt/private | has "/srv/vault fuse.oblivio"
echo "See you on Sunday." >/mnt/private/letter.txt
mount -o remount,ro /mnt/private
! touch /mnt/private/no 2>/dev/null || fail "it is not read-only"
umount /mnt/private
free

step "again as at boot: all of fstab, and nothing in the environment"
env -i PATH=/usr/sbin:/usr/bin mount -a
has "Sunday" </mnt/private/letter.txt
[ -d /root/.local/state/oblivio ] || fail "nothing is remembered of the volume"
oblivio umount /mnt/private
sed -i s/vault.pass/wrong.pass/ /etc/fstab
echo "a guess" >/etc/oblivio/wrong.pass
! mount /mnt/private 2>/tmp/said || fail "a wrong passphrase mounted it"
has "wrong passphrase" </tmp/said
! findmnt /mnt/private || fail "a wrong passphrase mounted it"

step "the unit of systemd"
printf 'VOLUME=/srv/vault\nDIR=/mnt/private\nOPTIONS=--allow-other\n' >/etc/oblivio/vault.conf
systemd-analyze verify oblivio@vault.service
# Nothing runs units here, so its command is run as systemd would.
start=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/oblivio@.service)
mkdir -p /run/credentials /var/lib/oblivio
cp /etc/oblivio/vault.pass /run/credentials/passphrase
env -i CREDENTIALS_DIRECTORY=/run/credentials HOME=/root XDG_STATE_HOME=/var/lib VOLUME=/srv/vault \
    DIR=/mnt/private OPTIONS=--allow-other sh -c "exec $start" &
timeout 60 bash -c 'until findmnt /mnt/private >/dev/null; do sleep 0.1; done' || fail "the unit's command"
has "Sunday" </mnt/private/letter.txt
VOLUME=/srv/vault DIR=/mnt/private sh -c "$(sed -n 's/^ExecStop=//p' /usr/lib/systemd/system/oblivio@.service)"
wait $! || fail "the unit's command ended with $?"

step "as another user"
useradd --create-home alice
runuser -l alice -c 'mkdir m && echo secret >p && chmod 600 p &&
    oblivio init -q --size 1G --kdf-memory 32K --kdf-passes 1 --passphrase-file p v &&
    oblivio mount -bq --passphrase-file p v m && echo hello >m/f && cat m/f && oblivio umount m' | has "hello"

step "apt remove"
apt-get remove -y -qq oblivio >/dev/null
! ls /usr/bin/oblivio /sbin/mount.*oblivio /usr/share/man/man1/oblivio* 2>/dev/null || fail "something is left"
[ -d /srv/vault ] || fail "the volume is gone"
echo "The package is good."
