"""The access log, which records each disclosure of records to a vendor, and the usage counters."""
