"""The CSV formats: files, columns, kinds of cell, tolerated deviations, and the conversions to OneRoster."""
