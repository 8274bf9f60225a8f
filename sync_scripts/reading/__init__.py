"""An export as it lies on disk: packages, manifests, headers, lines."""
