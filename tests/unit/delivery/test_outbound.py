"""D12: what is connected to was looked at first, at every attempt; names, certificates and redirects play no tricks."""

from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import Sequence
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from millrace.delivery.domain.addresses import Reach
from millrace.delivery.receivers.outbound import Outbound, Refused
from millrace.delivery.receivers.posting import NoAnswer, Unreached
from tests.support.local_target import accept, answer, local_target
from tests.unit.delivery.test_addresses import REFUSED_URLS

LOOPBACK = Reach(loopback=True)
BODY = b'{"event_id":"e1"}'


def never(host: str, port: int) -> Sequence[str]:
    raise AssertionError("nothing may be resolved, let alone connected to")


@pytest.mark.parametrize("url", REFUSED_URLS)
def test_the_table_is_refused_before_a_name_is_resolved(url: str) -> None:
    with pytest.raises(Refused):
        Outbound(resolve=never).post(url, {}, BODY)


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["10.0.0.1"],
        ["169.254.169.254"],
        ["::1"],
        ["::ffff:127.0.0.1"],
        ["fe80::1%eth0"],
        ["64:ff9b::a9fe:a9fe"],
        ["fd00:ec2::254"],
        ["8.8.8.8", "127.0.0.1"],
        ["127.0.0.1", "8.8.8.8"],
        ["no address"],
    ],
)
def test_a_name_that_leads_inside_is_refused_even_if_only_in_part(addresses: list[str]) -> None:
    with pytest.raises(Refused):
        Outbound(resolve=lambda host, port: addresses).post("https://innocent.example/", {}, BODY)


def test_a_name_that_changes_its_answer_is_looked_at_again_and_used_as_resolved() -> None:
    """DNS rebinding: one look per attempt, and the connection goes to what was looked at."""
    asked: list[str] = []

    def rebinding(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    with local_target(accept) as target:
        outbound = Outbound(LOOPBACK, resolve=rebinding)
        url = f"http://target.example:{target.port}/x"
        assert outbound.post(url, {}, BODY).status == 200
        with pytest.raises(Refused):
            outbound.post(url, {}, BODY)
    assert asked == ["target.example"] * 2
    [request] = target.requests
    assert request.headers["host"] == f"target.example:{target.port}"


def test_a_redirect_is_not_followed() -> None:
    with local_target(accept) as inside, local_target(answer(307, Location=inside.url)) as target:
        assert Outbound(LOOPBACK).post(target.url, {}, BODY).status == 307
    assert inside.requests == []


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with local_target(accept) as proxy, local_target(accept) as target:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        Outbound(LOOPBACK).post(target.url, {}, BODY)
    assert (len(proxy.requests), len(target.requests)) == (0, 1)


def test_plain_http_goes_nowhere_but_to_this_machine() -> None:
    with pytest.raises(Refused):
        Outbound(LOOPBACK, resolve=lambda host, port: ["8.8.8.8"]).post("http://public.example/", {}, BODY)


def test_a_name_that_does_not_resolve_and_a_port_nobody_listens_on_were_not_reached() -> None:
    def gone(host: str, port: int) -> Sequence[str]:
        raise OSError("no such host")

    def empty(host: str, port: int) -> Sequence[str]:
        return []

    for resolve in (gone, empty):
        with pytest.raises(Unreached):
            Outbound(resolve=resolve).post("https://nowhere.example/", {}, BODY)
    with local_target(accept) as target:
        pass
    with pytest.raises(Unreached):
        Outbound(LOOPBACK).post(target.url, {}, BODY)


def test_the_next_address_is_tried_when_the_first_does_not_listen() -> None:
    with local_target(accept) as target:
        outbound = Outbound(LOOPBACK, resolve=lambda host, port: ["127.0.0.2", "127.0.0.1"])
        assert outbound.post(f"http://target.example:{target.port}/", {}, BODY).status == 200


def test_over_tls_the_name_is_asked_for_and_checked_though_the_address_is_connected_to(tmp_path: Path) -> None:
    server, client = certificate(tmp_path, "target.example")
    with local_target(accept, tls=server) as target:
        outbound = Outbound(LOOPBACK, resolve=lambda host, port: ["127.0.0.1"], tls=lambda: client)
        assert outbound.post(f"https://target.example:{target.port}/", {}, BODY).status == 200
        with pytest.raises(Unreached):
            outbound.post(f"https://other.example:{target.port}/", {}, BODY)
        strangers = Outbound(LOOPBACK, resolve=lambda host, port: ["127.0.0.1"])
        with pytest.raises(Unreached):
            strangers.post(f"https://target.example:{target.port}/", {}, BODY)
    [request] = target.requests
    assert request.headers["host"] == f"target.example:{target.port}"
    assert target.names == ["target.example", "other.example", "target.example"]


def test_an_answer_over_the_cap_is_no_answer() -> None:
    with local_target(answer(200, b" " * 1001)) as target, pytest.raises(NoAnswer):
        Outbound(LOOPBACK, most_answer_bytes=1000).post(target.url, {}, BODY)
    with local_target(answer(200, b" " * 1000)) as target:
        assert len(Outbound(LOOPBACK, most_answer_bytes=1000).post(target.url, {}, BODY).body) == 1000


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context with a certificate of its own for `name`, and a client's that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    today = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(today - dt.timedelta(days=1))
        .not_valid_after(today + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "server.pem").write_bytes(pem + private)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "server.pem")
    return server, ssl.create_default_context(cadata=pem.decode())
