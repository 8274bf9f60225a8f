"""Feeds as operators know them: runs, held runs, pauses, histories, rejected rows, quality, previews, exclusions."""
