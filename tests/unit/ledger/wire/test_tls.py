"""The lean wire over TLS, as AWS speaks it: kept alive, and only with a server that proves its name."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from millrace.ledger.adapters.wire import connections as wire_connections
from millrace.ledger.adapters.wire.connections import AwsEndpoint, KeptConnections, WireLimits, request_bytes
from millrace.ledger.adapters.wire.failures import AwsUnanswered

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
BODY = b"x" * 300_000
"""Many TLS records, as a page of the log is."""


@dataclass
class Secured:
    certificate: Path
    url: str = ""
    opened: int = 0
    bodies: list[bytes] = field(default_factory=list)


def certify(folder: Path, name: x509.GeneralName) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    called = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    made = (
        x509.CertificateBuilder()
        .subject_name(called)
        .issuer_name(called)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - dt.timedelta(days=1))
        .not_valid_after(NOW + dt.timedelta(days=36_500))
        .add_extension(x509.SubjectAlternativeName([name]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, secret = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate, secret


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[x509.GeneralName, bool], Secured]]:
    """A server with a certificate of that name, which the wire trusts or not."""
    serving: list[ThreadingHTTPServer] = []

    def start(name: x509.GeneralName, trusted: bool) -> Secured:
        certificate, key = certify(tmp_path, name)
        state = Secured(certificate)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                state.opened += 1

            def do_POST(self) -> None:
                state.bodies.append(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.send_header("Content-Length", str(len(state.bodies[-1])))
                self.end_headers()
                self.wfile.write(state.bodies[-1])

            def log_message(self, *_: object) -> None:
                """Tests print nothing."""

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """A client that refuses the certificate is what a test wants."""

        server = Quiet(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        serving.append(server)
        state.url = f"https://127.0.0.1:{server.server_address[1]}"
        for variable in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
            monkeypatch.delenv(variable, raising=False)
        if trusted:
            monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
        wire_connections._context.cache_clear()
        return state

    yield start
    for server in serving:
        server.shutdown()
        server.server_close()
    wire_connections._context.cache_clear()


def to(server: Secured) -> KeptConnections:
    return KeptConnections(AwsEndpoint.of(server.url), WireLimits(2, 5, 2))


LOOPBACK = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


def test_one_secured_connection_serves_many_large_requests(
    serve: Callable[[x509.GeneralName, bool], Secured],
) -> None:
    server = serve(LOOPBACK, True)
    connections = to(server)
    for number in range(5):
        body = bytes([number]) + BODY
        assert connections.exchange(request_bytes("POST", "/", {"host": "h"}, body)).body == body
    assert (server.opened, len(server.bodies)) == (1, 5)


@pytest.mark.parametrize(
    ("name", "trusted"), [(x509.DNSName("other.example"), True), (LOOPBACK, False)], ids=["another name", "unknown"]
)
def test_a_server_that_does_not_prove_its_name_is_sent_nothing(
    serve: Callable[[x509.GeneralName, bool], Secured], name: x509.GeneralName, trusted: bool
) -> None:
    server = serve(name, trusted)
    with pytest.raises(AwsUnanswered) as refused:
        to(server).exchange(request_bytes("POST", "/", {"host": "h"}, b"secret"))
    assert refused.value.kind == "SSLError"
    assert server.bodies == []
