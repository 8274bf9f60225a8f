"""The WSGI entry: `gunicorn wsgi:app`. Settings come from the environment; `roster run` starts gunicorn with them."""

from roster_service.app import create_app
from roster_service.server.entry import open_application

app = open_application(create_app)
