//! Runs one workload: process groups, cgroups, ftrace capture, the quiet window.
