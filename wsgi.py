"""The WSGI entry: `gunicorn wsgi:app`. Settings come from the environment; `roster run` starts gunicorn with them."""

from roster_service.server.entry import open_service

app = open_service()
