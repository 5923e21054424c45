# Boots a candidate kernel of klab once. U-Boot runs this before what it boots by default, and
# goes on with that where nothing is armed.
if test -e ${devtype} ${devnum}:${distro_bootpart} /klab/next; then
  # Deleted first: whatever the candidate does, the boot after it is the default one.
  fatrm ${devtype} ${devnum}:${distro_bootpart} /klab/next
  if test -e ${devtype} ${devnum}:${distro_bootpart} /klab/next; then
    echo "klab: cannot delete /klab/next, booting the default kernel"
  else
    echo "klab: booting the candidate once"
    sysboot ${devtype} ${devnum}:${distro_bootpart} any ${pxefile_addr_r} /klab/candidate.conf
    echo "klab: the candidate cannot be loaded, restarting"
    reset
  fi
fi
