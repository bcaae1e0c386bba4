"""Scripts and trajectories from a served model: one folder from its options to its summary."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from evalharness._version import __version__
from evalharness.config import RunConfig
from evalharness.engine.asking import AbortedError, TokenPrices, asked
from evalharness.engine.throttle import CEILING
from evalharness.errors import UserError
from evalharness.policy.base import RequestForm
from evalharness.policy.connections import sampling_of
from evalharness.policy.event_loop import run_to_end
from evalharness.policy.opened import Prepared
from evalharness.policy.resolve import prepare
from evalharness.records.store import MANIFEST
from evalharness.refine import schemas
from evalharness.refine.asking import Asking, Job
from evalharness.refine.conversation import MOST_CALLS, ScriptConversation, TrajectoryConversation
from evalharness.refine.outcome import SCHEMA, count_finished, stored_script, write_outcome
from evalharness.refine.personas import draw, read_personas
from evalharness.refine.script import Script
from evalharness.refine.synthesis_progress import SynthesisProgress
from evalharness.refine.synthesis_prompts import SynthesisPrompts, load_prompts
from evalharness.refine.synthesis_store import (
    PASSED,
    FinishedLine,
    SynthesisStore,
    finished_lines,
    read_synthesis_manifest,
)
from evalharness.refine.verify import Readings, script_mistakes

CONTEXT_TOKENS = 16384
"""Of a server that we start, where the model allows as much: three example scripts, a script and its trajectory."""

Kind = Literal["scripts", "trajectories"]
Watch = Callable[[SynthesisProgress], AbstractContextManager[None]]
"""Shows the progress for as long as its context is open."""


@contextmanager
def unwatched(progress: SynthesisProgress) -> Iterator[None]:
    yield


@dataclass(frozen=True)
class Synthesis:
    """What both commands need to know."""

    model: RunConfig
    """Which model, how its replies are drawn, and how it is served; all else in it is ignored."""
    output: Path
    prompts: Path | None = None
    most_calls: int = MOST_CALLS
    plain: bool = False
    """Do not ask the server for structured output."""
    prices: TokenPrices = field(default_factory=TokenPrices)

    def identity(self, kind: Kind, prompts: SynthesisPrompts) -> dict[str, Any]:
        """What must be equal for a folder to be continued. The number of personas may grow."""
        sampling = sampling_of(self.model)
        return {
            "kind": kind,
            "most_calls": self.most_calls,
            "prompts_sha256": prompts.sha256,
            "vllm_args": self.model.vllm_args,
            "sampling": {
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "max_tokens": sampling.max_tokens,
                "seed": sampling.seed,
            },
        }


@dataclass(frozen=True)
class Made:
    """What came of it."""

    folder: Path
    summary: dict[str, Any]
    stopped: str | None
    """Why it ended before every persona was tried; None when it did not."""

    @property
    def exit_status(self) -> int:
        """0, or 3 when infrastructure failures left personas out."""
        return 0 if self.stopped is None and not self.summary["left"] else 3


def make_scripts(
    what: Synthesis, personas_file: Path | None, count: int, *, watch: Watch = unwatched
) -> Made:
    """Draw `count` personas and have the model write a script for each, or go on with that.

    Raises UserError for what the user can fix; infrastructure failures are recorded and named in what is returned.
    """
    prompts = load_prompts(what.prompts)
    personas = read_personas(personas_file)
    identity = what.identity("scripts", prompts) | {"personas_sha256": personas.sha256}
    jobs = [
        Job(
            persona.key,
            partial(ScriptConversation, persona.key, index, persona.text, prompts, what.most_calls),
        )
        for index, persona in enumerate(draw(personas.personas, count, what.model.seed))
    ]
    facts = {"personas": {"file": Path(personas.source).name, "usable": len(personas.personas),
                          "broken": len(personas.broken), "repeated": personas.repeated}}  # fmt: skip
    return _synthesise(what, "scripts", identity, jobs, facts, watch)


def make_trajectories(
    what: Synthesis,
    scripts: Path,
    count: int | None,
    readings: Readings,
    *,
    watch: Watch = unwatched,
) -> Made:
    """Have the model play the scripts of a folder (its first `count`), or go on with that."""
    prompts = load_prompts(what.prompts)
    source = read_synthesis_manifest(scripts)
    if source["identity"]["kind"] != "scripts":
        raise UserError(f"--scripts {scripts} holds no scripts; make some with: evalharness refine scripts")
    identity = what.identity("trajectories", prompts) | {
        "readings": readings.to_json(),
        "scripts_digest": source["digest"],
    }
    passed = finished_lines(scripts / PASSED)
    if not passed:
        raise UserError(
            f"--scripts {scripts}: no script passed there; evalharness refine show {scripts} says why"
        )
    if count is not None and count > len(passed):
        raise UserError(
            f"-n {count}: {scripts} holds {len(passed)} scripts; make more with a larger -n there"
        )

    def play(line: FinishedLine) -> TrajectoryConversation:
        record = line.read()
        script = _playable(scripts, record)
        return TrajectoryConversation(
            record["key"],
            record["index"],
            record["persona"],
            prompts,
            what.most_calls,
            record["calls"],
            script=script,
            readings=readings,
        )

    jobs = [Job(line.key, partial(play, line)) for line in passed[:count]]
    return _synthesise(what, "trajectories", identity, jobs, {"scripts": len(passed)}, watch)


def _playable(folder: Path, record: dict[str, Any]) -> Script:
    """The script of a finished line, as good as when it passed."""
    script = stored_script(folder, record)
    if mistakes := script_mistakes(script):
        raise UserError(f"{folder}: the script of {record['key']} does not pass any more: {mistakes[0]}")
    return script


def _synthesise(
    what: Synthesis,
    kind: Kind,
    identity: dict[str, Any],
    jobs: Sequence[Job],
    facts: dict[str, Any],
    watch: Watch,
) -> Made:
    config = what.model
    if config.is_scripted:
        raise UserError(
            f"--model {config.model} writes no text; give a checkpoint, a hub id or http://host:port/v1"
        )
    progress = SynthesisProgress(kind, len(jobs))

    def set_status(text: str) -> None:
        progress.status = text

    with SynthesisStore(what.output) as store, watch(progress):
        prepared = prepare(_with_context(config), {}, set_status)
        facts = {**facts, "wanted": len(jobs), "prices": astuple(what.prices)}
        manifest = _manifest(what, identity | {"model": dict(prepared.identity)}, facts)
        store.resume(manifest)
        left = [job for job in jobs if job.key not in store.done]
        progress.tally = count_finished(what.output)
        progress.total = len(left) + progress.tally.finished
        stopped = None
        if left or not (what.output / MANIFEST).exists():
            stopped = run_to_end(_ask_all(what, kind, prepared, store, manifest, left, progress))
        progress.status = "writing the summary"
        given = None if what.prices == TokenPrices() else what.prices
        return Made(what.output, write_outcome(what.output, given), stopped)


def _with_context(config: RunConfig) -> RunConfig:
    """A server that we start takes longer conversations than for episodes, where the model allows it."""
    from evalharness.server.demo import is_demo

    if config.is_endpoint or "--max-model-len" in config.vllm_args or is_demo(config.model):
        return config
    from evalharness.server.checkpoint import model_context_length

    allowed = model_context_length(config.model)
    if allowed is None:
        return config
    length = f"--max-model-len {min(CONTEXT_TOKENS, allowed)}"
    return config.model_copy(update={"vllm_args": f"{config.vllm_args} {length}".strip()})


def _manifest(what: Synthesis, identity: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """`identity` is what must be equal to continue; `sessions` says what happened each time."""
    return {
        "schema": SCHEMA,
        "digest": hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest(),
        "identity": identity,
        "model_name": what.model.display_name,
        "sessions": [
            {
                "started": time.time(),
                "evalharness": __version__,
                "python": platform.python_version(),
                "operation": {
                    "concurrency": what.model.concurrency,
                    "endpoints": list(what.model.endpoints),
                    "replicas": what.model.replicas,
                    "plain": what.plain,
                },
                **facts,
            }
        ],
    }


async def _ask_all(
    what: Synthesis,
    kind: Kind,
    prepared: Prepared,
    store: SynthesisStore,
    manifest: dict[str, Any],
    left: Sequence[Job],
    progress: SynthesisProgress,
) -> str | None:
    """Returns why it stopped early, or None."""
    schema = schemas.SCRIPT if kind == "scripts" else schemas.TRAJECTORY
    form = RequestForm(response_format=None if what.plain else schemas.response_format(kind, schema))
    ceiling = max(1, min(CEILING, len(left)))
    model = asked(what.model, prepared, store.folder, form, progress, store.add_error, ceiling=ceiling)
    async with model as asking:
        manifest["sessions"][-1] |= {"policy": asking.facts, **await asking.settle_form()}
        store.begin(manifest)
        try:
            await Asking(asking, store, progress).run(left)
        except AbortedError as error:
            return str(error)
        finally:
            calls, events = progress.calls, list(asking.events)
            store.note_session(wall_s=round(progress.elapsed, 1), calls=calls, events=events)
    return None
