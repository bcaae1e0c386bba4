"""What a vLLM of our own is started with: the checkpoint, its identity, its arguments; or which kept one is there."""

from __future__ import annotations

import hashlib
import logging
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.config import SCRIPTED, RunConfig
from evalharness.errors import UserError, close_to
from evalharness.policy.adapted import adapted
from evalharness.settings import openai_hint

if TYPE_CHECKING:
    from evalharness.server.keeping import ToKeep
    from evalharness.server.kept import Kept

Status = Callable[[str], None]
_NAMED = ["demo", "demo-base", *SCRIPTED]


@dataclass(frozen=True)
class ToLoad:
    """A whole checkpoint, or a hub id, as it is given to a vLLM."""

    model: str
    identity: dict[str, Any]
    extra: list[str]


def vllm_arguments(config: RunConfig) -> tuple[list[str], dict[str, Any]]:
    """What is passed to vLLM besides the model, and what of it is part of the identity."""
    from evalharness.server.arguments import option_names
    from evalharness.server.placement import data_parallel_doubt

    try:
        extra = shlex.split(config.vllm_args)
    except ValueError as error:
        raise UserError(f"--vllm-args cannot be split into words: {error}") from None
    if doubt := data_parallel_doubt(config.model, extra):
        logging.getLogger("evalharness").warning(doubt)
    if config.replicas > 1 and "--port" in " ".join(extra):
        raise UserError("--vllm-args: --port cannot be the same for several --replicas; leave it out")
    if config.acts_by_tools and "enable-auto-tool-choice" not in option_names(extra):
        raise UserError(
            "--action-interface tools needs a vLLM that reads tool calls; name the model's parser: --vllm-args "
            '"--enable-auto-tool-choice --tool-call-parser hermes"'
        )
    if config.sampling == "model" and "generation-config" not in option_names(extra):
        extra += ["--generation-config", "auto"]
    identity: dict[str, Any] = {"kind": "vllm"}
    if config.chat_template is not None:
        if "chat-template" in option_names(extra):
            raise UserError("--chat-template and --vllm-args name a chat template each; leave one out")
        path, identity["chat_template_sha256"] = _chat_template(config.chat_template)
        extra += ["--chat-template", str(path)]
    return extra, identity


def whole_model(config: RunConfig, on_status: Status) -> ToLoad:
    """Raises UserError, before anything is started, where a vLLM could not serve the model."""
    from evalharness.server.checkpoint import check_checkpoint, is_local
    from evalharness.server.demo import DEMO_BASE, ensure_demo
    from evalharness.server.find import find_server

    extra, identity = vllm_arguments(config)
    model = config.model
    hub_id = config.model != DEMO_BASE and not is_local(config.model)
    if hub_id and not re.fullmatch(r"[\w.-]+/[\w.-]+", config.model):
        raise UserError(
            f"--model {config.model}: no such directory"
            + (f" (did you mean {meant!r}?)" if (meant := close_to(config.model, _NAMED)) else "")
            + "; give a checkpoint directory, a hub id such as org/name, "
            + f"{', '.join(_NAMED)}, replay:RUN, or http://host:port/v1"
            + openai_hint(config.model)
        )
    checkpoint = None if hub_id or config.model == DEMO_BASE else check_checkpoint(config.model)
    if config.model == DEMO_BASE:
        if not config.cluster:
            find_server(config.vllm)  # before the model is made
        checkpoint = check_checkpoint(ensure_demo(on_status))
    if checkpoint is None:
        identity["hub_id"] = config.model
    else:
        on_status("hashing the checkpoint")
        model = str(checkpoint.path)
        identity |= {"architecture": checkpoint.architecture, "checkpoint_sha256": checkpoint.identity}
    return ToLoad(model, identity, extra)


def has_adapter(config: RunConfig) -> bool:
    from evalharness.server.demo import DEMO
    from evalharness.server.lora import is_adapter

    return config.lora is not None or config.model == DEMO or is_adapter(config.model)


def kept_server(config: RunConfig, what: ToLoad) -> Kept | None:
    """The server that `evalharness server start` has started for the very same, where there is one."""
    from evalharness.server.find import find_server
    from evalharness.server.kept import kept_folder, kept_key, read_kept

    if config.cluster or config.replicas > 1 or config.deterministic or config.lora_serve:
        return None
    key = kept_key(what.identity, find_server(config.vllm), what.extra)
    return read_kept(kept_folder() / f"{key}.json")


def to_keep(config: RunConfig, on_status: Status, *, idle_s: float) -> ToKeep:
    """What `evalharness server start` serves. Raises UserError."""
    from evalharness.server.keeping import ToKeep

    if has_adapter(config):
        extra, identity = vllm_arguments(config)
        adapter, to_serve, _ = adapted(config, extra, on_status)
        found = ToLoad(to_serve(on_status).model, identity | adapter, extra)
    else:
        found = whole_model(config, on_status)
    return ToKeep(
        config.model, found.model, config.display_name, found.identity, found.extra, config.vllm, idle_s
    )


def command_line(config: RunConfig, what: ToLoad, served_name: str | None = None) -> str:
    """Of the vLLM that would be started; its port is a free one."""
    from evalharness.server.arguments import server_arguments
    from evalharness.server.find import find_server
    from evalharness.server.managed import default_context

    if config.cluster:
        return f"a vLLM on the cluster's nodes, --replicas {config.replicas}"
    if (there := kept_server(config, what)) is not None:
        return f"the kept vLLM of {there.model}, {there.base_url}"
    argv = server_arguments(
        find_server(config.vllm),
        model=what.model,
        served_name=served_name or config.display_name,
        port=0,
        max_model_len=default_context(what.model),
        extra=what.extra,
    )
    line = shlex.join(argv).replace(" --port 0 ", " --port PORT ")
    return line + (f"  ({config.replicas} of them)" if config.replicas > 1 else "")


def _chat_template(path: Path) -> tuple[Path, str]:
    """Where it is, and its SHA-256."""
    path = path.expanduser().absolute()
    try:
        return path, hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise UserError(f"--chat-template {path} cannot be read: {error.strerror}") from None
