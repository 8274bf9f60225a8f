"""How often a vendor may ask, and an account may fail to log in."""
