"""The rule for imports: floors point downwards, rooms know their neighbours, and the lower floors are plain Python.

`make lint` checks it with import-linter; the list of neighbours and the packages that each floor may use stand in
`pyproject.toml`. Every module is on a floor of a room, so there is a rule for every import.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

CORE, SHARED = "ledger", "runtime"
"""The two rooms that every room may know. The second is one floor: above the adapters, below the doors."""
ANY = "*"


class ModulePlace(NamedTuple):
    room: str
    floor: str


class House(Contract):
    """Each import of a hub module goes to its own floor or a lower one, in its own room or a neighbour's."""

    package: Any = fields.StringField()
    floors: Any = fields.ListField(subfield=fields.StringField())
    """From the ground up. `runtime` is one of them."""
    neighbours: Any = fields.ListField(subfield=fields.StringField())
    """`room: neighbour neighbour`; a room without neighbours is listed too."""
    outside: Any = fields.ListField(subfield=fields.StringField())
    """`floor: package package`, or `floor: *`. The floors that are not listed use the standard library alone."""
    everywhere: Any = fields.ListField(subfield=fields.StringField())
    """Modules that belong to no room, and that every room may import."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        broken = [problem for module in self._modules(graph) for problem in self._problems(graph, module)]
        output.verbose_print(verbose, f"{len(broken)} imports are not allowed.")
        return ContractCheck(kept=not broken, metadata={"broken": sorted(broken)})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for problem in check.metadata["broken"]:
            output.print_error(problem)

    def _modules(self, graph: ImportGraph) -> Iterator[str]:
        for module in sorted(graph.find_descendants(self.package)):
            if module not in self.everywhere:
                yield module

    def _problems(self, graph: ImportGraph, module: str) -> Iterator[str]:
        place = self._place(module)
        if place is None:
            if module.count(".") > 1 or graph.find_modules_directly_imported_by(module):
                yield f"{module} is on no floor of a known room; pyproject.toml lists both."
            return
        for imported in graph.find_modules_directly_imported_by(module):
            reason = self._reason(place, imported)
            if reason:
                yield f"{module} -> {imported}: {reason}"

    def _reason(self, place: ModulePlace, imported: str) -> str:
        """Why a module at this place must not import that one; empty if it may."""
        if not f"{imported}.".startswith(f"{self.package}."):
            return self._outside_reason(place, imported.partition(".")[0])
        if imported in self.everywhere or imported == self.package:
            return ""
        to = self._place(imported)
        if to is None:
            return "that is no module of a room"
        if self._height(to.floor) > self._height(place.floor):
            return f"{place.floor} must not know {to.floor}, which is above it"
        known = {place.room, CORE, SHARED, *self._table("neighbours").get(place.room, ())}
        return "" if to.room in known else f"{place.room} and {to.room} are not neighbours"

    def _outside_reason(self, place: ModulePlace, package: str) -> str:
        allowed = self._table("outside").get(place.floor, ())
        if package in sys.stdlib_module_names or ANY in allowed or package in allowed:
            return ""
        return f"{place.floor} uses {', '.join(allowed) or 'the standard library'} only"

    def _place(self, module: str) -> ModulePlace | None:
        parts = module.split(".")[1:]
        if parts[0] == SHARED:
            return ModulePlace(SHARED, SHARED)
        if len(parts) < 2 or parts[0] not in self._table("neighbours") or parts[1] not in self.floors:
            return None
        return ModulePlace(parts[0], parts[1])

    def _height(self, floor: str) -> int:
        return int(self.floors.index(floor))

    def _table(self, field: str) -> Mapping[str, tuple[str, ...]]:
        rows = (str(row).partition(":") for row in getattr(self, field))
        return {name.strip(): tuple(listed.split()) for name, _, listed in rows}
