"""The console: the pages with which operators run the service in a browser."""
