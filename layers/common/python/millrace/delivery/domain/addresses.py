"""Which addresses a delivery may connect to: public ones, whatever form they are written in (D12)."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from millrace.ledger.domain.errors import BadRequest

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA = {ipaddress.ip_address(text) for text in ("169.254.169.254", "168.63.129.16", "fd00:ec2::254")}
_NOT_PUBLIC = [
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/4", "240.0.0.0/4",
        "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16",
    )
]  # fmt: skip
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]*|[0-9]+)")


@dataclass(frozen=True, slots=True)
class Reach:
    """What may be connected to. `loopback` is for a developer's machine; plain http goes nowhere else."""

    public: bool = True
    loopback: bool = False


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address taken apart; `target` is path and query as they go on the wire."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """For the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == {"http": 80, "https": 443}[self.scheme] else f"{host}:{self.port}"


def endpoint(url: str, reach: Reach) -> Endpoint:
    """Take a URL apart. Raises `BadRequest` for a form that two readers could understand in two ways."""
    if not url.isascii() or not url.isprintable() or any(character in url for character in ' \\^`{|}<>"'):
        raise _refused("has characters that an address does not have")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _refused("is not an address") from error
    host = parts.hostname or ""
    if parts.scheme not in ("https", "http") or not host:
        raise _refused("does not begin with https:// and a host")
    if "@" in parts.netloc:
        raise _refused("has a user name in it")
    if parts.fragment or "%" in parts.netloc or port == 0:
        raise _refused("has a part that cannot be sent")
    if parts.scheme == "http" and not reach.loopback:
        raise _refused("is not https")
    literal = literal_address(host)
    if literal is not None and (why := refusal(literal, reach)):
        raise _refused(why)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Endpoint(parts.scheme, host, port or {"http": 80, "https": 443}[parts.scheme], target)


def literal_address(host: str) -> Address | None:
    """The address a host is, if it is one. Raises `BadRequest` for a decimal, octal, hex or short form."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    labels = host.rstrip(".").split(".")
    if _NUMBER.fullmatch(labels[-1]) or not all(labels):
        raise _refused("has a number for a host; write an IPv4 address as four plain decimals")
    return None


def refusal(address: Address, reach: Reach) -> str:
    """Why this address may not be connected to; empty if it may."""
    if is_loopback(address):
        return "" if reach.loopback else "leads to this machine itself"
    if not reach.public:
        return "leads away from this machine"
    if address in _METADATA or any(inner in _METADATA for inner in _embedded(address)):
        return "leads to a metadata service"
    if not _is_public(address):
        return "leads to an address that is not public"
    return ""


def is_loopback(address: Address) -> bool:
    """Only the plain forms: a mapped or embedded one is refused everywhere."""
    return address.is_loopback if isinstance(address, ipaddress.IPv4Address) else address == ipaddress.IPv6Address(1)


def _is_public(address: Address) -> bool:
    if any(address in network for network in _NOT_PUBLIC if network.version == address.version):
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return True
    if address.scope_id is not None or address.ipv4_mapped is not None:
        return False
    if address not in _GLOBAL_V6 and address not in _NAT64:
        return False
    return all(_is_public(inner) for inner in _embedded(address))


def _embedded(address: Address) -> list[Address]:
    """The IPv4 addresses that a gateway would take out of an IPv6 one."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    number = int(address)
    found: list[Address | None] = [address.ipv4_mapped, address.sixtofour]
    if address in _NAT64 or number >> 32 == 0 or (number >> 32) & 0xFFFFFFFF in _ISATAP:
        found.append(ipaddress.IPv4Address(number & 0xFFFFFFFF))
    return [inner for inner in found if inner is not None]


def _refused(why: str) -> BadRequest:
    return BadRequest(f"The target's url {why}.", field="url")
