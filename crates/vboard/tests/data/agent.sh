#!/bin/sh
# Stand-in for the agent. One step per boot; the number of the boot is kept on the root disk.
# The port of the test's listener is in agent.yaml.
n=$(cat /var/lib/klab/boots 2>/dev/null || echo 0)
n=$((n + 1))
echo $n > /var/lib/klab/boots
sync
port=$(sed -n 's/^port: //p' /etc/klab/agent.yaml)
uptime=$(cut -d' ' -f1 /proc/uptime)
tell() { echo "agent: $*"; echo "$*" | nc -w 10 10.0.2.2 "$port"; }

if [ -d /boot/grub ]; then
  entry=/boot/klab/candidate.cfg
  arm() { dd if=/etc/klab/armed of=/boot/grub/grubenv conv=notrunc 2>/dev/null; sync; }
else
  entry=/boot/klab/candidate.conf
  arm() { cp /etc/klab/armed /boot/klab/next; sync; }
fi
# snippet NAME: takes the prepared entry
snippet() { cp "/etc/klab/$1.cfg" $entry; }
tell "boot $n on $(uname -r) after $uptime s"
case $n in
  1)
    stat -f -c 'agent: cgroup %T' /sys/fs/cgroup
    echo "agent: controllers $(cat /sys/fs/cgroup/cgroup.controllers)"
    echo "agent: tracers $(cat /sys/kernel/tracing/available_tracers)"
    echo "agent: tools $(for t in cyclictest stress-ng trace-cmd kexec chrt; do command -v $t; done | wc -l)"
    echo "agent: $(df -m /boot | tail -n 1) $(df -m / | tail -n 1)"
    release=$(cat /etc/klab/release)
    mkdir -p /boot/klab/a
    cp /var/tmp/vmlinuz /boot/klab/a/vmlinuz
    begin=$(cut -d. -f1 /proc/uptime)
    /usr/lib/klab/mkinitrd "$release" "/lib/modules/$release" /boot/klab/a/initrd || tell "mkinitrd failed"
    echo "agent: mkinitrd took $(($(cut -d. -f1 /proc/uptime) - begin)) s, $(stat -c %s /boot/klab/a/initrd) bytes"
    snippet good; arm; reboot -f
    ;;
  2) reboot ;;
  3)
    mkdir -p /boot/klab/garbage
    head -c 300000 /dev/urandom > /boot/klab/garbage/vmlinuz
    cp /boot/klab/a/initrd /boot/klab/garbage/initrd
    snippet garbage; arm; reboot -f
    ;;
  4) snippet panic; arm; reboot -f ;;
  5) snippet hang; arm; reboot -f ;;
  6) snippet broken; arm; reboot -f ;;
  7) rm $entry; arm; reboot -f ;;
  8) echo c > /proc/sysrq-trigger ;;
  9) poweroff -f ;;
esac
sleep 1000
