"""How a request is read: params, plan, path filters, statements, orderings, texts, pulls, the reader, the standby."""
