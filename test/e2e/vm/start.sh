#!/bin/sh
# The first program on the disk: makes a cgroup v2 hierarchy, puts itself into a leaf of it, and goes on as the job.
set -e
export PATH=/usr/bin:/bin:/sbin
mount -t proc proc /proc
mount -t sysfs sys /sys
ip link set lo up

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
exec /sbin/job
