"""Reading an export from disk: packages, manifests, headers, lines, and the reasons of rejections."""
