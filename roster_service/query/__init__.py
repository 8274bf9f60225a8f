"""From a query string to SQL: params (parsed), plan (checked against the schema), request (authorized), statements."""
