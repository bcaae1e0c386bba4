"""Find the model from which a training starts (a checkpoint or a LoRA adapter), and the model's earlier trainings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.reading import read_known
from evalharness.models.serving.checkpoint import check_checkpoint, find_cached_snapshot, is_local
from evalharness.models.serving.demo import DEMO, DEMO_ADAPTER, DEMO_BASE, ensure_demo
from evalharness.models.serving.lora import Adapter, check_adapter, check_fits, find_base, is_adapter
from evalharness.models.serving.merged import RECORD
from evalharness.training.tune.settings import Settings

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class StartingModel:
    base: Path
    adapter: Adapter | None = None
    """A LoRA adapter of `base` whose training continues; None: start from `base`."""

    def settings(self, given: Mapping[str, Any], settings: Settings) -> Settings:
        """Return `settings` with the adapter's rank and alpha. Raises UserError if `given` has other values."""
        if self.adapter is None:
            return settings
        if settings.method != "lora":
            raise UserError(
                f"--method full cannot continue the adapter {self.adapter.name}: merge it first (evalharness run "
                f"--model {self.adapter.path} leaves the merged model in the cache), and train the merged model"
            )
        alpha = self.adapter.settings.get("lora_alpha")
        own = {
            "lora_rank": self.adapter.rank,
            "lora_alpha": alpha if isinstance(alpha, int) else self.adapter.rank,
        }
        for name, value in own.items():
            if given.get(name) not in (None, value):
                raise UserError(
                    f"--{name.replace('_', '-')} {given[name]}: the adapter whose training continues has {value}; "
                    "leave the option out"
                )
        return replace(settings, lora_rank=own["lora_rank"], lora_alpha=own["lora_alpha"])

    def chain(self) -> list[dict[str, Any]]:
        """Return name and hash of each model in the history of this model, oldest first, with data hashes if known."""
        base = check_checkpoint(self.base)
        before = _read_chain(self.base)
        links = [*before, {"model": self.base.name, "sha256": base.identity, **_read_data_hashes(self.base)}]
        if self.adapter is None:
            return links
        path = self.adapter.path
        earlier = [
            link for link in _read_chain(path) if link.get("sha256") not in {link["sha256"] for link in links}
        ]
        return [
            *links,
            *earlier,
            {"model": path.name, "sha256": self.adapter.identity, **_read_data_hashes(path)},
        ]


def find_start(model: str, on_line: Callable[[str], None]) -> StartingModel:
    """Find the model that `--model` names: a folder, a hub id in the cache, or a demo. Raises UserError."""
    if model == DEMO_BASE:
        return StartingModel(ensure_demo(on_line))
    if model == DEMO:
        return StartingModel(ensure_demo(on_line), check_adapter(DEMO_ADAPTER))
    if is_adapter(model):
        adapter = check_adapter(model)
        base = ensure_demo(on_line) if adapter.base == DEMO_BASE else find_base(adapter)
        check_fits(adapter, check_checkpoint(base))
        return StartingModel(base, adapter)
    if is_local(model):
        return StartingModel(Path(model).expanduser())
    snapshot = find_cached_snapshot(model)
    if snapshot is None:
        raise UserError(
            f"--model {model} is neither a folder nor in the hub's cache (download it: hf download {model})"
        )
    return StartingModel(snapshot)


def _read_manifest(folder: Path) -> Mapping[str, Any]:
    """Return the manifest of the training that wrote `folder`; empty if the manifest is missing. A checkpoint's
    manifest is in the parent folder."""
    places = [folder, folder.parent] if folder.name.startswith("checkpoint-") else [folder]
    manifests = (read_known(place / _MANIFEST) for place in places)
    return next((manifest for manifest in manifests if isinstance(manifest.get("data"), dict)), {})


def _read_data_hashes(folder: Path) -> dict[str, Any]:
    files = _read_manifest(folder).get("data", {}).get("files")
    known = files if isinstance(files, list) else []
    digests = [file["sha256"] for file in known if isinstance(file, dict) and "sha256" in file]
    return {"data_sha256": digests} if digests else {}


def _read_chain(folder: Path) -> list[dict[str, Any]]:
    if record := read_known(folder / RECORD):  # the folder was made by merging an adapter into its base
        return [
            {"model": name, "sha256": str(record[key])}
            for name, key in (("base", "base_sha256"), ("adapter", "lora_sha256"))
            if key in record
        ]
    chain = _read_manifest(folder).get("chain")
    known = chain if isinstance(chain, list) else []
    return [dict(link) for link in known if isinstance(link, dict) and isinstance(link.get("sha256"), str)]
