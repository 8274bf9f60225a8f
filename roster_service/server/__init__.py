"""The parts that gunicorn runs: the worker, the logger, the missing `Server` header, and the WSGI application that
answers 503 while the service cannot use the database."""
