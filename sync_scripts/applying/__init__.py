"""What changes in the roster: the desired state of each record, compared with the stored one, and written."""
