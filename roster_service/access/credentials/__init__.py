"""What proves who asks: API keys, passwords, access and permission tokens, and the keys that sign them."""
