//! Rows in SQLite or PostgreSQL through one SQL text, objects by digest.
