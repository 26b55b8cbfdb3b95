#!/usr/bin/env bash
# Runs the test of full disks on small file systems of their own: tmpfs, and images of ext4, xfs and btrfs. As
# root, in a mount namespace that goes away with it. What the machine cannot mount is left out, and said so; where it can
# mount nothing, the whole test is skipped (77).
#
#     file_systems.sh FULL ROUNDS
set -u
full=$1 rounds=$2

if [[ ${3:-} != inside ]]; then
  [[ $(id -u) == 0 ]] && unshare -m true 2>/dev/null || { echo 'file_systems: not allowed to mount'; exit 77; }
  exec unshare -m bash "$0" "$full" "$rounds" inside
fi

work=$(mktemp -d)
mnt=$work/mnt
mkdir "$mnt"
ran=0 failed=0
trap 'umount "$mnt" 2>/dev/null; rm -rf "$work"' EXIT

# try NAME ROUNDS COMMAND...: mounts with COMMAND, runs the test with mappings and without.
try() {
  local name=$1 count=$2
  shift 2
  if ! "$@" >"$work/log" 2>&1; then
    echo "file_systems: no $name here: $(tail -n 1 "$work/log")"
    return
  fi
  for mode in '' no-mmap; do
    # shellcheck disable=SC2086
    "$full" "$mnt" "$count" $mode && echo "  on $name ${mode:-with mappings}" || { failed=1; echo "FAILED on $name $mode"; }
    ran=$((ran + 1))
  done
  umount "$mnt"
}

image() {
  local size=$1
  shift
  truncate -s "$size" "$work/image" && "$@" "$work/image" && mount -o loop "$work/image" "$mnt"
}

try tmpfs "$rounds" mount -t tmpfs -o size=4m tmpfs "$mnt"
try ext4 "$((rounds / 4 + 1))" image 16M mkfs.ext4 -q -F
rm -f "$work/image"
try xfs 1 image 320M mkfs.xfs -q
rm -f "$work/image"
try btrfs 1 image 128M mkfs.btrfs -q
if ((ran == 0)); then exit 77; fi
exit $failed
