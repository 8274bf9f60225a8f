"""The export in temporary tables: its lines staged, normalized, converted, and known by their hashes."""
