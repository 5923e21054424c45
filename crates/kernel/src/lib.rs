//! Kernel packages: reading deb, tar and image files into one canonical kernel.
