//! Virtual boards: images from Debian packages, QEMU, consoles, power.
