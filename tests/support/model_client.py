"""Asks a model on 127.0.0.1 the way an agent does, over plain `http.client`."""

import http.client
import json
from typing import Any
from urllib.parse import urlsplit


def ask_model(url: str, path: str = "/v1/chat/completions", *, method: str = "POST", **body: Any) -> tuple[int, str]:
    """Status and text of the answer."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    try:
        head = {"authorization": "Bearer what-the-agent-was-given", "content-type": "application/json"}
        connection.request(method, path, json.dumps({"model": "m", **body}), head)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()
