#!/bin/sh
# Runs one command, given in /command with one argument a line, says how it ended, and powers off.
export PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root NO_COLOR=1
# From here on the console belongs to the command: kernel messages (an OOM kill) stay in the log.
dmesg -n 1

# Whoever started this machine ends it after this time; when that process is gone, the machine ends itself.
(sleep "$(cat /timeout-seconds)" && poweroff -f) &

set --
while IFS= read -r argument; do
  set -- "$@" "$argument"
done </command

printf '\n=== job begins ===\n'
"$@" </dev/null
code=$?
printf '\n=== job ended with exit code %d ===\n' "$code"
# Changing a terminal setting waits until everything is written; powering off does not.
stty -F /dev/console -echo
poweroff -f
