//! Boot methods: preflight, install, arm once, confirm, restore.
