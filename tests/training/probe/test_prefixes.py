"""Prefixes that are made once, also where several probes begin at a time."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from evalharness.training.probe import prefixes


def test_probes_that_begin_together_make_their_prefixes_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, made = threading.Barrier(2), list[Path]()

    async def make(order: Any, known: Any, path: Path, **more: Any) -> None:
        made.append(path)

    def is_of(path: Path, _: Any) -> bool:
        return path in made

    monkeypatch.setattr(prefixes, "home_folder", lambda: tmp_path)
    monkeypatch.setattr(prefixes, "make", make)
    monkeypatch.setattr(prefixes, "_is_of", is_of)
    found: list[Path] = []

    def begin() -> None:
        both.wait()
        found.append(prefixes.made_prefixes(("babyai",), 20, None))  # type: ignore[arg-type]

    threads = [threading.Thread(target=begin) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(made) == 1
    assert found == [made[0]] * 2
