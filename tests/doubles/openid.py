"""A real OpenID provider (`oidc-provider-mock`, built on Authlib's server) on a real socket.

Added to it: the proof of PKCE, which it does not ask for, and ways to misbehave.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import jwt

CLIENT_ID = "rag"
CLIENT_SECRET = "client-secret"


@dataclass(kw_only=True)
class OpenIdProvider:
    """Its people, and what it does wrong."""

    url: str = ""
    down: bool = False
    claims: dict[str, Any] = field(default_factory=dict)  # put into ID tokens; None takes one out
    challenges: dict[str, str] = field(default_factory=dict)  # code → code challenge

    @property
    def settings(self) -> dict[str, Any]:
        return {"oidc_issuer": self.url, "oidc_client_id": CLIENT_ID, "oidc_client_secret": CLIENT_SECRET}

    def person(self, subject: str, **claims: Any) -> str:
        httpx.put(f"{self.url}/users/{subject}", json=claims, trust_env=False).raise_for_status()
        return subject

    def approve(self, address: str, subject: str) -> str:
        """What a person does at the provider; returns the address that the browser is sent back to."""
        reply = httpx.post(address, data={"sub": subject}, timeout=60, trust_env=False)
        assert reply.status_code == 302, reply.text[:300]
        return reply.headers["location"]

    def _before(self) -> Any:
        import flask

        if self.down:
            return "out of order", 503
        if flask.request.path == "/oauth2/token":
            verifier = hashlib.sha256(flask.request.form.get("code_verifier", "").encode()).digest()
            expected = self.challenges.get(flask.request.form.get("code", ""), "")
            sent = flask.request.authorization
            secret = None if sent is None else (sent.username, sent.password)
            if base64.urlsafe_b64encode(verifier).decode().rstrip("=") != expected:
                return {"error": "invalid_grant"}, 400
            if secret != (CLIENT_ID, CLIENT_SECRET):
                return {"error": "invalid_client"}, 401
        return None

    def _after(self, response: Any) -> Any:
        import flask

        if flask.request.path == "/oauth2/authorize" and response.status_code == 302:
            code = parse_qs(urlsplit(response.headers["Location"]).query)["code"][0]
            assert flask.request.args["code_challenge_method"] == "S256"
            self.challenges[code] = flask.request.args["code_challenge"]
        if flask.request.path == "/oauth2/token" and response.status_code == 200 and self.claims:
            tokens = response.get_json()
            jwk = flask.g.oidc_provider_mock_storage.jwk.as_dict(is_private=True)
            right = jwt.decode(tokens["id_token"], options={"verify_signature": False})
            claims = {name: value for name, value in {**right, **self.claims}.items() if value is not None}
            tokens["id_token"] = jwt.encode(claims, jwt.PyJWK(jwk).key, "RS256")
            response.set_data(flask.json.dumps(tokens))
        return response


@contextmanager
def running_provider(people: Mapping[str, Mapping[str, Any]]) -> Iterator[OpenIdProvider]:
    """A provider with people: subject → claims."""
    import oidc_provider_mock
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    users = [oidc_provider_mock.User(sub=subject, claims=dict(claims)) for subject, claims in people.items()]
    application = oidc_provider_mock.app(require_nonce=True, user_claims=users)
    provider = OpenIdProvider()
    application.before_request(provider._before)
    application.after_request(provider._after)
    server = make_server("127.0.0.1", 0, application, threaded=True)
    provider.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join(5)
        server.server_close()
