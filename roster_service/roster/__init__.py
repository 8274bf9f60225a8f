"""The roster as both sides know it: visibility, labels, vocabulary, names, withheld fields, JSON expressions."""
