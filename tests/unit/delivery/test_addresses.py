"""D12: which addresses a delivery may go to, whatever they are written like."""

from __future__ import annotations

import ipaddress

import pytest

from millrace.delivery.domain.addresses import Reach, endpoint, refusal
from millrace.ledger.domain.errors import BadRequest

PUBLIC = Reach()
DEVELOPER = Reach(loopback=True)

REFUSED_URLS = [
    # decimal, octal, hex, short and mixed forms of loopback, metadata and even public addresses
    "https://2130706433/", "https://0177.0.0.1/", "https://017700000001/", "https://0x7f000001/", "https://0x7f.1/",
    "https://127.1/", "https://127.0.1/", "https://0/", "https://2852039166/", "https://0xa9fea9fe/",
    "https://0251.0376.0251.0376/", "https://169.254.43518/", "https://1.1/", "https://134744072/",
    "https://127.0.0.1./", "https://1.2.3.4.5/", "https://256.1.1.1/", "https://0x/", "https://a.0x7f/",
    # plain addresses that are not public
    "https://127.0.0.1/", "https://127.255.255.254/", "https://0.0.0.0/", "https://10.0.0.1/", "https://172.16.0.1/",
    "https://172.31.255.255/", "https://192.168.1.1/", "https://169.254.169.254/latest/", "https://169.254.170.2/",
    "https://100.64.0.1/", "https://100.100.100.200/", "https://168.63.129.16/", "https://192.0.0.8/",
    "https://198.18.0.1/", "https://192.0.2.1/", "https://203.0.113.9/", "https://224.0.0.1/", "https://240.0.0.1/",
    "https://255.255.255.255/",
    # IPv6: loopback, unspecified, mapped, compatible, embedded, link-local, unique local, documentation, multicast
    "https://[::1]/", "https://[::]/", "https://[::ffff:127.0.0.1]/", "https://[::ffff:8.8.8.8]/",
    "https://[::ffff:a9fe:a9fe]/", "https://[::127.0.0.1]/", "https://[::a9fe:a9fe]/", "https://[2002:7f00:1::]/",
    "https://[2002:a9fe:a9fe::1]/", "https://[2002:a00:1::]/", "https://[64:ff9b::127.0.0.1]/",
    "https://[64:ff9b::a9fe:a9fe]/", "https://[64:ff9b:1::1]/", "https://[fe80::1]/", "https://[fe80::1%25eth0]/",
    "https://[fc00::1]/", "https://[fd00:ec2::254]/", "https://[fec0::1]/", "https://[ff02::1]/",
    "https://[2001:db8::1]/", "https://[2001:0:53aa:64c::1]/", "https://[100::1]/", "https://[3fff::1]/",
    "https://[2600::5efe:7f00:1]/", "https://[2600::200:5efe:a9fe:a9fe]/",
    # what two readers could understand in two ways, and what is no https address
    "http://example.com/", "ftp://example.com/", "file:///etc/passwd", "https://", "https:///x", "//example.com",
    "https://user@example.com/", "https://user:word@example.com/", "https://example.com@127.0.0.1/",
    "https://exa mple.com/", "https://example.com\\@127.0.0.1/", "https://example.com/\r\nHost: x", "https://例え.jp/",
    "https://127%2e0.0.1/", "https://example.com:0/", "https://example.com:99999/", "https://example.com:x/",
    "https://example.com/#part", "https://[::1", "https://a..b/", "gopher://127.0.0.1/", "",
]  # fmt: skip


@pytest.mark.parametrize("url", REFUSED_URLS)
def test_the_table_is_refused_entirely(url: str) -> None:
    with pytest.raises(BadRequest) as refused:
        endpoint(url, PUBLIC)
    assert refused.value.details["field"] == "url"


@pytest.mark.parametrize("url", [url for url in REFUSED_URLS if url not in ("https://127.0.0.1/", "https://[::1]/")])
def test_a_developers_machine_may_reach_itself_in_plain_words_only(url: str) -> None:
    if url == "http://example.com/" or url.startswith("https://127.255"):
        assert endpoint(url, DEVELOPER).host  # http is looked at again once the name is resolved
        return
    with pytest.raises(BadRequest):
        endpoint(url, DEVELOPER)


@pytest.mark.parametrize(
    ("url", "host", "port", "target", "authority"),
    [
        ("https://example.com", "example.com", 443, "/", "example.com"),
        ("https://Example.COM:8443/a/b?c=d", "example.com", 8443, "/a/b?c=d", "example.com:8443"),
        ("https://8.8.8.8/x", "8.8.8.8", 443, "/x", "8.8.8.8"),
        ("https://[2606:4700::1111]:443/", "2606:4700::1111", 443, "/", "[2606:4700::1111]"),
        ("https://[64:ff9b::8.8.8.8]/", "64:ff9b::8.8.8.8", 443, "/", "[64:ff9b::8.8.8.8]"),
        ("https://a1.example.com./", "a1.example.com.", 443, "/", "a1.example.com."),
    ],
)
def test_a_public_address_is_taken_apart(url: str, host: str, port: int, target: str, authority: str) -> None:
    where = endpoint(url, PUBLIC)
    assert (where.host, where.port, where.target, where.authority) == (host, port, target, authority)


@pytest.mark.parametrize("text", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "2a00:1450::1", "2002:808:808::1"])
def test_public_addresses_may_be_connected_to(text: str) -> None:
    assert refusal(ipaddress.ip_address(text), PUBLIC) == ""


def test_a_stub_stays_on_this_machine() -> None:
    here = Reach(public=False, loopback=True)
    assert refusal(ipaddress.ip_address("127.0.0.1"), here) == ""
    assert refusal(ipaddress.ip_address("8.8.8.8"), here) == "leads away from this machine"
