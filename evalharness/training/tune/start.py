"""What a training starts from: a checkpoint, or a LoRA adapter that is trained on; and what that came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.reading import read_known
from evalharness.models.serving.checkpoint import cached_snapshot, check_checkpoint, is_local
from evalharness.models.serving.demo import DEMO, DEMO_ADAPTER, DEMO_BASE, ensure_demo
from evalharness.models.serving.lora import Adapter, check_adapter, check_fits, find_base, is_adapter
from evalharness.models.serving.merged import RECORD
from evalharness.training.tune.settings import Settings

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Start:
    base: Path
    adapter: Adapter | None = None
    """Its matrices are trained on, over the same base."""

    def settings(self, given: Mapping[str, Any], settings: Settings) -> Settings:
        """`settings` with the adapter's rank and scale. Raises UserError where `given` asks for others."""
        if self.adapter is None:
            return settings
        if settings.method != "lora":
            raise UserError(
                f"--method full trains no adapter: merge {self.adapter.name} first (evalharness run --model "
                f"{self.adapter.path} keeps the merged model in its cache), and train that"
            )
        alpha = self.adapter.settings.get("lora_alpha")
        own = {
            "lora_rank": self.adapter.rank,
            "lora_alpha": alpha if isinstance(alpha, int) else self.adapter.rank,
        }
        for name, value in own.items():
            if given.get(name) not in (None, value):
                raise UserError(
                    f"--{name.replace('_', '-')} {given[name]}: the adapter that is trained on has {value}; leave the "
                    "option out"
                )
        return replace(settings, lora_rank=own["lora_rank"], lora_alpha=own["lora_alpha"])

    def chain(self) -> list[dict[str, Any]]:
        """What came before, first to last: name and hash, and hashes of the data where a training is known."""
        base = check_checkpoint(self.base)
        before = _came_from(self.base)
        found = [*before, {"model": self.base.name, "sha256": base.identity, **_data(self.base)}]
        if self.adapter is None:
            return found
        path = self.adapter.path
        earlier = [
            link for link in _came_from(path) if link.get("sha256") not in {link["sha256"] for link in found}
        ]
        return [*found, *earlier, {"model": path.name, "sha256": self.adapter.identity, **_data(path)}]


def start_of(model: str, on_line: Callable[[str], None]) -> Start:
    """Of `--model`. Raises UserError."""
    if model == DEMO_BASE:
        return Start(ensure_demo(on_line))
    if model == DEMO:
        return Start(ensure_demo(on_line), check_adapter(DEMO_ADAPTER))
    if is_adapter(model):
        adapter = check_adapter(model)
        base = ensure_demo(on_line) if adapter.base == DEMO_BASE else find_base(adapter)
        check_fits(adapter, check_checkpoint(base))
        return Start(base, adapter)
    if is_local(model):
        return Start(Path(model).expanduser())
    found = cached_snapshot(model)
    if found is None:
        raise UserError(
            f"--model {model}: no such folder, and not in the hub's cache (hf download {model}, or give a folder)"
        )
    return Start(found)


def _manifest(folder: Path) -> Mapping[str, Any]:
    """Of the training that made a folder; empty where none is known. A checkpoint's lies in the folder above."""
    places = [folder, folder.parent] if folder.name.startswith("checkpoint-") else [folder]
    found = (read_known(place / _MANIFEST) for place in places)
    return next((manifest for manifest in found if isinstance(manifest.get("data"), dict)), {})


def _data(folder: Path) -> dict[str, Any]:
    files = _manifest(folder).get("data", {}).get("files")
    known = files if isinstance(files, list) else []
    digests = [file["sha256"] for file in known if isinstance(file, dict) and "sha256" in file]
    return {"data_sha256": digests} if digests else {}


def _came_from(folder: Path) -> list[dict[str, Any]]:
    if record := read_known(folder / RECORD):  # an adapter merged into its base
        return [
            {"model": name, "sha256": str(record[key])}
            for name, key in (("base", "base_sha256"), ("adapter", "lora_sha256"))
            if key in record
        ]
    chain = _manifest(folder).get("chain")
    known = chain if isinstance(chain, list) else []
    return [dict(link) for link in known if isinstance(link, dict) and isinstance(link.get("sha256"), str)]
