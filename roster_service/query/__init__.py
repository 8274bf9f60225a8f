"""From a query string to records: params (the wish), plan (checked), statements (SQL), run (the page)."""
