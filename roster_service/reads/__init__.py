"""What an authorized request gets: pages and records, in one message to the database."""
