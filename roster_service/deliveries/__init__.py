"""The roster as files: a zip of OneRoster CSV of what a vendor sees, and its deliveries to the vendor."""
