"""The wire format, declared once: marshmallow schemas whose fields know the SQL expressions of their values."""
