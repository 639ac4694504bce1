"""Run a module while one line of the product is another: `python -m tests.simulation.plant FILE LINE INSTEAD MODULE …`.

The line changes as its file is loaded; nothing is copied, and nothing compiled but this file.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import PurePosixPath
from types import CodeType, ModuleType


@dataclass(frozen=True, slots=True)
class Planted:
    module: str
    line: str
    instead: str

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.module:
            return None
        spec = PathFinder.find_spec(name, path, target)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = _Changing(name, spec.origin, self)
        return spec


class _Changing(SourceFileLoader):
    def __init__(self, name: str, path: str, planted: Planted) -> None:
        super().__init__(name, path)
        self.planted = planted

    def get_code(self, fullname: str) -> CodeType:
        """Neither from compiled code nor to it."""
        source = self.get_data(self.path).decode()
        assert source.count(self.planted.line) == 1
        code: CodeType = self.source_to_code(
            source.replace(self.planted.line, self.planted.instead).encode(), self.path
        )
        return code


def main() -> None:
    file, line, instead, module, *arguments = sys.argv[1:]
    sys.meta_path.insert(0, Planted(".".join(PurePosixPath("millrace", file).with_suffix("").parts), line, instead))
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
