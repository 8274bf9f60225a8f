"""What the database keeps so that pages are fast: orderings and rendered records."""
