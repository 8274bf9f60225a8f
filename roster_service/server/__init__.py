"""What gunicorn runs: its worker, its log, its banner, and the application while the database is away."""
