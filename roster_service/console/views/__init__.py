"""The screens of the console, by subject."""
