"""The accounts that operators manage: vendors, their clients and grants, operators, their sessions, districts."""
