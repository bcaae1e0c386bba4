"""Have a served model write scripts and trajectories into a folder, and write the folder's summary."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from evalharness.base.errors import UserError
from evalharness.config import PolicyConfig
from evalharness.models.base import RequestForm
from evalharness.models.connections import sampling_identity
from evalharness.models.event_loop import run_to_end
from evalharness.models.many_requests import (
    TRIES,
    AskedModel,
    AskingResult,
    open_asked_model_for,
    refuse_scripted,
)
from evalharness.models.opened import Prepared
from evalharness.models.resolve import prepare
from evalharness.models.slots import MOST
from evalharness.models.work import Watch, WorkProgress
from evalharness.records.answers import make_manifest
from evalharness.records.files import MANIFEST
from evalharness.training.synthesis import schemas
from evalharness.training.synthesis.dialogue import MOST_CALLS, Dialogue, ScriptDialogue, TrajectoryDialogue
from evalharness.training.synthesis.outcome import count_finished, read_stored_script, write_outcome
from evalharness.training.synthesis.personas import draw, read_personas
from evalharness.training.synthesis.signals import Tally
from evalharness.training.synthesis.synthesis_prompts import SynthesisPrompts, load_prompts
from evalharness.training.synthesis.synthesis_store import (
    PASSED,
    FinishedLine,
    SynthesisStore,
    list_finished,
    read_synthesis_manifest,
)
from evalharness.training.synthesis.verify import Errors, find_script_mistakes

CONTEXT_TOKENS = 16384
"""Context length of a vLLM server started here, if the model allows it. Three example scripts, a script and a
trajectory fit into this context."""

Kind = Literal["scripts", "trajectories"]


@dataclass
class SynthesisProgress(WorkProgress):
    tally: Tally = field(default_factory=Tally)
    """Counts of all finished personas, including those of earlier sessions."""

    def details(self) -> list[str]:
        counted = self.tally
        at = ", ".join(f"{counted.passed_at[call]} at call {call}" for call in sorted(counted.passed_at))
        parts = [f"passed {counted.passed}" + (f" ({at})" if at else "")]
        if counted.rejected:
            why = ", ".join(f"{signal} {count}" for signal, count in counted.rejected.most_common())
            parts.append(f"rejected {counted.rejected.total()} ({why})")
        return parts


@dataclass
class PersonaJob:
    """A persona whose dialogue is not finished. The dialogue is created when the job starts, because the dialogues of
    all jobs would not fit into memory."""

    key: str
    make: Callable[[], Dialogue]
    _dialogue: Dialogue | None = None
    """The dialogue of an earlier attempt, which failed because of the infrastructure."""

    async def run(self, model: AskedModel, store: SynthesisStore, progress: SynthesisProgress) -> None:
        dialogue = self._dialogue
        if dialogue is None:
            # Verify in a thread: a regular expression written by the model may take up to the time limit.
            dialogue = self._dialogue = await asyncio.to_thread(self._begin, store)
        while not dialogue.finished:
            messages, number = dialogue.messages(), dialogue.calls + 1
            answer = await model.answer(self.key, messages, number=number)
            store.add_call(answer)
            await asyncio.to_thread(dialogue.take, answer)
        store.add_finished(dialogue)
        progress.tally.add(dialogue.record())
        progress.finish()
        self._dialogue = None

    def _begin(self, store: SynthesisStore) -> Dialogue:
        """Return the dialogue after replaying the stored calls of the persona."""
        dialogue = self.make()
        for call in store.calls.get(self.key, ()):
            dialogue.take(call)
        return dialogue


@dataclass(frozen=True)
class Synthesis:
    """Options that `refine scripts` and `refine trajectories` share."""

    model: PolicyConfig
    output: Path
    prompts: Path | None = None
    most_calls: int = MOST_CALLS
    plain: bool = False
    """Whether to ask the server without structured output."""
    tries: int = TRIES
    """Number of tries at a persona after infrastructure failures."""

    def identity(self, kind: Kind, prompts: SynthesisPrompts) -> dict[str, Any]:
        """Return the options that must be unchanged to continue a folder. The number of personas may increase."""
        return {
            "kind": kind,
            "most_calls": self.most_calls,
            "prompts_sha256": prompts.sha256,
            "vllm_args": self.model.vllm_args,
            "sampling": sampling_identity(self.model),
        }


def make_scripts(
    what: Synthesis,
    personas_file: Path | None,
    count: int,
    *,
    watch: Watch = nullcontext,
) -> AskingResult:
    """Draw `count` personas and have the model write a script for each persona that is not finished.

    Raises UserError for wrong options or files. Infrastructure failures are recorded and returned.
    """
    prompts = load_prompts(what.prompts)
    personas = read_personas(personas_file)
    identity = what.identity("scripts", prompts) | {"personas_sha256": personas.sha256}
    jobs = [
        PersonaJob(
            persona.key,
            partial(
                ScriptDialogue,
                persona.key,
                index,
                persona.text,
                prompts,
                what.most_calls,
            ),
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
    errors: Errors,
    *,
    watch: Watch = nullcontext,
) -> AskingResult:
    """Have the model play those of the folder's first `count` scripts that are not finished."""
    prompts = load_prompts(what.prompts)
    source = read_synthesis_manifest(scripts)
    if source["identity"]["kind"] != "scripts":
        raise UserError(f"--scripts {scripts} has no scripts; make some with: evalharness refine scripts")
    identity = what.identity("trajectories", prompts) | {
        "errors": errors,
        "scripts_digest": source["digest"],
    }
    passed = list_finished(scripts / PASSED)
    if not passed:
        raise UserError(f"--scripts {scripts}: no script in this folder passed the verification")
    if count is not None and count > len(passed):
        raise UserError(
            f"-n {count}: {scripts} has only {len(passed)} passed scripts; make more: evalharness refine scripts -n"
        )

    def play(line: FinishedLine) -> TrajectoryDialogue:
        record = line.read()
        script = read_stored_script(scripts, record)
        if mistakes := find_script_mistakes(script):  # the file may have been edited
            raise UserError(f"{scripts}: the script of {record['key']} no longer passes: {mistakes[0]}")
        return TrajectoryDialogue(
            record["key"],
            record["index"],
            record["persona"],
            prompts,
            what.most_calls,
            record["calls"],
            script=script,
            errors=errors,
        )

    jobs = [PersonaJob(line.key, partial(play, line)) for line in passed[:count]]
    return _synthesise(what, "trajectories", identity, jobs, {"scripts": len(passed)}, watch)


def _synthesise(
    what: Synthesis,
    kind: Kind,
    identity: dict[str, Any],
    jobs: Sequence[PersonaJob],
    facts: dict[str, Any],
    watch: Watch,
) -> AskingResult:
    config = what.model
    refuse_scripted(config, "--model")
    progress = SynthesisProgress(kind, len(jobs))
    with SynthesisStore(what.output) as store, watch(progress):
        prepared = prepare(_with_context(config), {}, progress.set_status)
        facts = {**facts, "wanted": len(jobs)}
        identity |= {"model": dict(prepared.identity)}
        store.load_or_refuse(
            make_manifest(identity, config.display_name, operation=_describe_operation(what), **facts)
        )
        left = [job for job in jobs if job.key not in store.done]
        progress.tally = count_finished(what.output)
        progress.finished = progress.tally.finished
        progress.total = len(left) + progress.finished
        if left or not (what.output / MANIFEST).exists():
            run_to_end(_ask_all(what, kind, prepared, store, left, progress))
        progress.status = "writing the summary"
        return AskingResult(what.output, write_outcome(what.output), progress.stopped)


def _with_context(config: PolicyConfig) -> PolicyConfig:
    """Return the options with a longer context for a vLLM server started here, if the model allows it."""
    from evalharness.models.serving.demo import is_demo

    if config.is_endpoint or "--max-model-len" in config.vllm_args or is_demo(config.model):
        return config
    from evalharness.models.serving.checkpoint import model_context_length

    allowed = model_context_length(config.model)
    if allowed is None:
        return config
    length = f"--max-model-len {min(CONTEXT_TOKENS, allowed)}"
    return config.model_copy(update={"vllm_args": f"{config.vllm_args} {length}".strip()})


def _describe_operation(what: Synthesis) -> dict[str, Any]:
    return {
        "concurrency": what.model.concurrency,
        "endpoints": list(what.model.endpoints),
        "replicas": what.model.replicas,
        "plain": what.plain,
    }


async def _ask_all(
    what: Synthesis,
    kind: Kind,
    prepared: Prepared,
    store: SynthesisStore,
    left: Sequence[PersonaJob],
    progress: SynthesisProgress,
) -> None:
    schema = schemas.SCRIPT if kind == "scripts" else schemas.TRAJECTORY
    form = RequestForm(response_format=None if what.plain else schemas.make_response_format(kind, schema))
    ceiling = max(1, min(MOST, len(left)))
    model = open_asked_model_for(store, prepared, form, progress, what.tries, what.model.concurrency, ceiling)
    async with model as asking:
        asking.answered_before = bool(store.done)
        store.note_start(policy=dict(asking.facts), **await asking.settle_form())
        try:
            await asking.run({job.key: partial(job.run, asking, store, progress) for job in left})
        finally:
            calls, events = progress.calls, list(asking.events)
            store.note_start(wall_s=round(progress.elapsed, 1), calls=calls, events=events)
