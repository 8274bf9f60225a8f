"""Applying an export to the roster: its desired state, the comparison with the stored records, and the writes."""
