"""How large a run of chaos is."""

from __future__ import annotations

from dataclasses import dataclass

FLOODER, MEASURED, OTHER = "a", "b", "c"
"""The tenants: the first floods, the second is measured, the third is just there."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A storm lasts at least `seconds`, and until it has had its events, kills and pauses."""

    seconds: float = 240
    events: int = 10_000
    """Acknowledged, at least."""
    kills: int = 100
    pause_seconds: float = 60
    """Of the emulator, in all."""
    longest_pause: float = 6
    seed: int = 1
    batch: int = 50
    """Events a request, of those clients that send many."""
    probes: int = 100
    """Single events whose way is timed, alone and again in the flood."""
    probe_seconds: float = 0.2
    """From one probe to the next."""
    lanes: int = 5
    """Clients over HTTP each tenant has; they share the doors among them."""
    flood_projects: int = 200
    flood_clients: int = 8
    flood_rate: float = 36
    """Requests a second while the flood is measured; a third of it in the storm."""
    hanging_targets: int = 12
    """Of the tenant that floods: they hear of every project it floods."""
    bound_seconds: float = 60
    """From the last fault until every delivery is made."""
    ratio: float | None = 3
    """How much slower the measured tenant may be in the flood than alone; None: told, not judged."""
    spared: frozenset[str] = frozenset()
    """Functions that are not killed."""

    @property
    def limit_seconds(self) -> float:
        """A storm that has not had its share by then ends without it."""
        return 4 * self.seconds + 60

    @property
    def patience_seconds(self) -> float:
        """Nothing has come for so long: what is still missing is called lost."""
        return 3 * self.bound_seconds


SMALL = Plan(
    seconds=5,
    events=200,
    kills=5,
    pause_seconds=2,
    longest_pause=1,
    batch=15,
    probes=3,
    lanes=1,
    flood_projects=5,
    flood_clients=1,
    flood_rate=5,
    hanging_targets=0,
    ratio=None,
)
