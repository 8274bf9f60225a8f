"""The CSV formats: files, columns, kinds of cell, and what is tolerated in them."""
