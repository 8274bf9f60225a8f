"""What is wrong with staged rows: cells, references, ids; rows that fail are rejected."""
