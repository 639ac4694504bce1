"""Who may see and change what of the archive and the tables, which hold the events of all tenants."""

from __future__ import annotations

from millrace.ledger.domain.access import OPERATOR, PARTITION_OF, Identity
from millrace.ledger.domain.errors import Forbidden
from millrace.ledger.domain.names import split_key

HUB_TENANT = "default"
"""The tenant of those who run the hub."""


def runs_the_hub(identity: Identity) -> bool:
    """An operator of the hub's own tenant who sees every partition. What concerns all tenants is theirs."""
    return OPERATOR in identity.roles and identity.tenant == HUB_TENANT and identity.sees_everything


def require_hub(identity: Identity, what: str) -> None:
    identity.require(OPERATOR)
    if not runs_the_hub(identity):
        raise Forbidden(
            f"{what} is the whole hub's: a token of the tenant {HUB_TENANT} that sees every partition (*) is needed.",
            field="tenant",
        )


def may_see_line(identity: Identity, ledger: str | None) -> bool:
    """Whether the bearer may see a line of the archive that tells this ledger. One that tells none may be anybody's."""
    contract, tenant, *scope = [*split_key(ledger or ""), ""]
    if not tenant or not contract:
        return runs_the_hub(identity)
    if tenant != identity.tenant:
        return False
    if contract == "sync":
        return scope[0] in identity.projects and identity.sees_everything
    if contract in PARTITION_OF:
        return identity.reaches(PARTITION_OF[contract](scope[0]))
    return identity.sees_everything
