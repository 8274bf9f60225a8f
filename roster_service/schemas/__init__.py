"""The wire format, declared once: marshmallow schemas whose fields know the SQL that their values come from."""
