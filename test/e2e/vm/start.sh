#!/bin/sh
# Runs one command, given in /command with one argument a line, in a machine with a cgroup v2 hierarchy, and powers off.
set -e
export PATH=/usr/bin:/bin:/sbin HOME=/root NO_COLOR=1
mount -t proc proc /proc
mount -t sysfs sys /sys
ip link set lo up
# From here on the console belongs to the command: kernel messages (an OOM kill) stay in the log.
dmesg -n 1

mount -t cgroup2 cgroup2 /sys/fs/cgroup
cd /sys/fs/cgroup
mkdir leaf
echo $$ >leaf/cgroup.procs
for controller in cpu memory cpuset io pids hugetlb; do
  if grep -qw "$controller" cgroup.controllers; then
    echo "+$controller" >cgroup.subtree_control
  fi
done
cd /

# Whoever started this machine ends it after this time; when that process is gone, the machine ends itself.
(sleep "$(cat /timeout-seconds)" && poweroff -f) &

set --
while IFS= read -r argument; do
  set -- "$@" "$argument"
done </command

set +e
printf '\n=== job begins ===\n'
"$@" </dev/null
code=$?
printf '\n=== job ended with exit code %d ===\n' "$code"
# Changing a terminal setting waits until everything is written; powering off does not.
stty -F /dev/console -echo
poweroff -f
