"""An export in temporary tables: staging, normalization, conversion, quarantine, retained records, and the hashes by
which a run leaves out lines that did not change."""
