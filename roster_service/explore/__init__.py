"""How operators look at a roster: search, facets, references, rejected rows, as a vendor sees it, who sees what."""
