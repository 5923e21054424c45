//! YAML plans and settings to model values, with diagnostics that name the place and the mend.
