"""`/docs`: a page to read and try the OpenAPI documents of the service. The service itself serves all assets."""

from __future__ import annotations

import json

from flask import Flask, Response, send_from_directory
from swagger_ui_bundle import swagger_ui_path

from roster_service.schemas.versions import VERSIONS

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Roster Service: API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/assets/swagger-ui.css">
</head>
<body>
<div id="ui"></div>
<script src="docs/assets/swagger-ui-bundle.js"></script>
<script src="docs/assets/swagger-ui-standalone-preset.js"></script>
<script>
SwaggerUIBundle({
  dom_id: "#ui",
  urls: %s,
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
  layout: "StandaloneLayout",
  deepLinking: true,
  validatorUrl: null
});
</script>
</body>
</html>
"""

ASSETS = frozenset({"swagger-ui.css", "swagger-ui-bundle.js", "swagger-ui-standalone-preset.js"})
# Relative addresses, so that the page works behind a path prefix too.
DOCUMENTS = [
    *({"name": version.title, "url": f".{version.root}/openapi.json"} for version in VERSIONS),
    {"name": "Vendor interface", "url": "./v1/openapi.json"},
]


def register_docs(app: Flask) -> None:
    """Registers the page and its assets."""

    def show_page() -> Response:
        return Response(PAGE % json.dumps(DOCUMENTS), mimetype="text/html")

    def show_asset(name: str) -> Response:
        # Only the three assets: "-" does not exist, so any other name is a 404.
        return send_from_directory(swagger_ui_path, name if name in ASSETS else "-", max_age=86_400)

    app.add_url_rule("/docs", endpoint="docs", view_func=show_page, methods=["GET"])
    app.add_url_rule("/docs/assets/<name>", endpoint="docs_asset", view_func=show_asset, methods=["GET"])
