#!/bin/busybox sh
# First program of the guest: finds the disk, puts the files of this run on it and goes on there.
# When a line fails, the kernel panics (its first program ended) and the machine stops without an exit code.
set -e
busybox mount -t devtmpfs dev /dev
while read -r module; do
  busybox insmod "/modules/$module.ko"
done </modules/order
busybox mount -t ext4 /dev/vda /disk
busybox cp -a /files/. /disk/
busybox mount --move /dev /disk/dev
exec busybox switch_root /disk /sbin/start
