"""Builds the client's wheel: the client itself, and the hub's rules that both share, taken from the hub's sources.

There is one copy of these rules. Of the hub, only the floors that need nothing but Python are packed.
"""

from __future__ import annotations

import atexit
import runpy
import shutil
import tempfile
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

HUB = Path("../../layers/common/python")
FLOORS = ("domain", "ports", "application", "receivers")


def is_shared(module: str) -> bool:
    """Whether the client's wheel has this module of the hub: a shared floor, or what stands above rooms and floors."""
    room, *floor = [*module.split(".")[1:3]] or [""]
    return room not in ("operators", "runtime") and (not floor or floor[0] in FLOORS)


class Shared(build_py):
    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        found = super().find_package_modules(package, package_dir)
        if package.startswith("millrace_client"):
            return found
        return [one for one in found if one[1] == "__init__" or is_shared(f"{package}.{one[1]}")]


build = tempfile.mkdtemp()  # what an earlier build left behind must not get into this one
atexit.register(shutil.rmtree, build, ignore_errors=True)
shared = [name for name in find_packages(str(HUB)) if is_shared(name)]
setup(
    version=runpy.run_path(str(HUB / "millrace/version.py"))["VERSION"],
    packages=[*find_packages(include=["millrace_client*"]), *shared],
    package_dir={"millrace": str(HUB / "millrace")},
    package_data={"millrace_client": ["py.typed"]},
    cmdclass={"build_py": Shared},
    options={"build": {"build_base": build}, "egg_info": {"egg_base": build}},
)
