"""The Roster Service: one roster of schools, classes, people and enrollments behind a OneRoster provider."""

__version__ = "0.1.0"
