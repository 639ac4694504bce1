"""How the names of AWS's services end, by region."""

from __future__ import annotations

SUFFIXES = {
    "cn": "amazonaws.com.cn",
    "eusc": "amazonaws.eu",
    "us-iso": "c2s.ic.gov",
    "us-isob": "sc2s.sgov.gov",
    "us-isof": "csp.hci.ic.gov",
    "eu-isoe": "cloud.adc-e.uk",
}
"""By how a region's name begins; everywhere else it is `amazonaws.com`."""


def suffix(in_region: str) -> str:
    """How the names of a region's services end."""
    start = in_region.rpartition("-")[0].rpartition("-")[0]
    return SUFFIXES.get(start, SUFFIXES.get(in_region.partition("-")[0], "amazonaws.com"))
