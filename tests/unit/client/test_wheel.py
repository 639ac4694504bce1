"""The wheels of the client and of the operator's commands: what is in them, and what they need."""

from __future__ import annotations

import subprocess
import sys
from email import message_from_bytes
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from millrace.version import VERSION

ROOT = Path(__file__).parents[3]
CLIENT, OPERATOR = ROOT / "clients/python", ROOT / "clients/operator"
SHARED = {"domain", "ports", "application", "receivers"}
UNWANTED = {"aws-lambda-powertools", "boto3", "botocore", "cryptography", "pydantic", "pyspark"}
IMPORT_ALL = """
import importlib, sys

wheel, modules, allowed = sys.argv[1], sys.argv[2].split(), set(sys.argv[3].split())

class Stranger:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in allowed and top not in sys.stdlib_module_names:
            raise ModuleNotFoundError(f"No module named {name!r} for a stranger", name=name)

sys.meta_path.insert(0, Stranger())
sys.path.insert(0, wheel)
for module in modules:
    assert importlib.import_module(module).__file__.startswith(wheel), module
"""


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, ZipFile]:
    """Each package's wheel, built from its folder as pip does it."""
    made = {}
    for folder in (CLIENT, OPERATOR):
        to = tmp_path_factory.mktemp("wheel")
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
        subprocess.run([*command, "--wheel-dir", str(to), str(folder)], check=True, capture_output=True)
        [file] = to.iterdir()
        made[folder] = ZipFile(file)
    return made


def modules(wheel: ZipFile) -> list[str]:
    names = [name for name in wheel.namelist() if name.endswith(".py")]
    return sorted(name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in names)


def requirements(wheel: ZipFile) -> set[str]:
    """The names of the distributions that the wheel's metadata asks for."""
    [name] = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = message_from_bytes(wheel.read(name))
    assert metadata["Version"] == VERSION
    return {canonicalize_name(Requirement(one).name) for one in metadata.get_all("Requires-Dist", [])}


def with_their_own(names: set[str]) -> set[str]:
    """These distributions, and those that they need in turn."""
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        name = canonicalize_name(waiting.pop())
        found.add(name)
        try:
            needed = [Requirement(one) for one in requires(name) or ()]
        except PackageNotFoundError:
            continue
        waiting |= {one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})}
        waiting -= found
    return found


def test_the_clients_wheel_has_the_client_and_the_floors_it_shares_with_the_hub(wheels: dict[Path, ZipFile]) -> None:
    packed = modules(wheels[CLIENT])
    client = [path.relative_to(CLIENT) for path in (CLIENT / "millrace_client").rglob("*.py")]
    own = {str(path.with_suffix("")).removesuffix("/__init__").replace("/", ".") for path in client}
    assert {name for name in packed if name.startswith("millrace_client")} == own
    assert "millrace_client/py.typed" in wheels[CLIENT].namelist()
    floors = [name.split(".")[1:] for name in packed if not name.startswith("millrace_client")]
    assert {parts[1] for parts in floors if len(parts) > 1} <= SHARED
    assert {parts[0] for parts in floors if parts} == {
        "delivery", "lake", "ledger", "live", "realtime", "streams", "sync", "version",
    }  # fmt: skip
    assert {"millrace.delivery.application.dispatch", "millrace.ledger.domain.canonical", "millrace.ledger.ports"} <= {
        *packed
    }


def test_a_client_needs_nothing_of_aws(wheels: dict[Path, ZipFile]) -> None:
    declared = requirements(wheels[CLIENT])
    assert declared == {"httpx", "pyjwt", "rich", "typer", "urllib3", "websockets"}
    assert not with_their_own(declared) & UNWANTED


def test_every_module_of_the_clients_wheel_imports_with_what_it_declares_alone(wheels: dict[Path, ZipFile]) -> None:
    wheel = wheels[CLIENT]
    installed = with_their_own(requirements(wheel))
    places = packages_distributions().items()
    allowed = {name for name, owners in places if installed & {canonicalize_name(owner) for owner in owners}}
    allowed |= {"millrace", "millrace_client"}
    command = [sys.executable, "-c", IMPORT_ALL, str(wheel.filename), " ".join(modules(wheel)), " ".join(allowed)]
    run = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_the_operators_wheel_can_be_installed_beside_the_clients(wheels: dict[Path, ZipFile]) -> None:
    files = [{name for name in wheels[folder].namelist() if ".dist-info/" not in name} for folder in (CLIENT, OPERATOR)]
    assert not files[0] & files[1]
    assert requirements(wheels[OPERATOR]) == {"boto3", "millrace-client"}
    assert {"millrace_operator.archive", "millrace.operators.wiring.hub", "millrace.lake.adapters.store"} <= {
        *modules(wheels[OPERATOR])
    }


def test_a_build_leaves_nothing_behind_in_the_folder(wheels: dict[Path, ZipFile]) -> None:
    assert wheels
    for folder in (CLIENT, OPERATOR):
        assert [path.name for path in folder.iterdir() if path.name == "build" or path.suffix == ".egg-info"] == []
