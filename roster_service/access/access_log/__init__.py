"""The access log: which vendor was shown how many records of what, and when; and the usage counters."""
