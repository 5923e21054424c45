//! Comparisons to text, JSON and Markdown; renders only.
