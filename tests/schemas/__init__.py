"""The declared wire format, and the words of its vocabularies."""
