"""What is sent to the nodes: the harness and every installed environment, as they are here.

Ray's runtime environment carries these packages to each node before a worker starts there, so that all nodes play
with this machine's version, an editable checkout included. They are what the distributions' wheels would install:
their packages and their metadata, through whose entry points environments are found.
"""

from __future__ import annotations

import re
import shutil
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points, version
from importlib.util import find_spec
from pathlib import Path

_METADATA = ("METADATA", "PKG-INFO", "entry_points.txt", "top_level.txt")


def _distributions() -> dict[str, tuple[Distribution, set[str]]]:
    """Name -> (distribution, its top-level packages) of the harness and of all that provide an environment."""
    found = {"evalharness": (distribution("evalharness"), {"evalharness"})}
    for point in entry_points(group="evalharness.environments"):
        if point.dist is not None:
            _, packages = found.setdefault(point.dist.name, (point.dist, set()))
            packages.add(point.module.partition(".")[0])
    return dict(sorted(found.items()))


def stage(folder: Path) -> list[str]:
    """Copy everything into `folder`; returns the paths for Ray's `py_modules`."""
    staged = []
    for name, (found, packages) in _distributions().items():
        for package in sorted(packages):
            spec = find_spec(package)
            assert spec is not None
            if spec.submodule_search_locations:
                source = Path(next(iter(spec.submodule_search_locations)))
                target = folder / package
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", ".*"))
            else:
                assert spec.origin is not None
                target = Path(shutil.copy(spec.origin, folder))
            staged.append(str(target))
        metadata = folder / f"{re.sub(r'[-_.]+', '_', name)}-{found.version}.dist-info"
        metadata.mkdir()
        for file in _METADATA:
            if text := found.read_text(file):
                (metadata / file).write_text(text, encoding="utf-8")
        staged.append(str(metadata))
    return staged


def requirements() -> list[str]:
    """The libraries of these distributions, pinned to the versions that are installed here."""
    from packaging.requirements import Requirement

    own = _distributions()
    pins = set()
    for found, _ in own.values():
        for text in found.requires or []:
            requirement = Requirement(text)
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
                continue
            try:
                if requirement.name not in own:
                    pins.add(f"{requirement.name}=={version(requirement.name)}")
            except PackageNotFoundError:
                continue
    return sorted(pins)
