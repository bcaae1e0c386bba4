"""Make command-line options from the fields of the configuration, for every command that uses a model."""

from __future__ import annotations

import argparse
import types
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from evalharness.base.errors import at_least
from evalharness.cli.common import add_data_option, add_json_option, choose_suite, data_folder
from evalharness.cli.output import note
from evalharness.cli.parser import argument, number, whole_number, with_default
from evalharness.config import OPTIONS, PolicyConfig, RunConfig, make_config, make_part, option_of, options_in
from evalharness.config.protocol import read_protocol_options

WHAT = "what to evaluate"
HOW = "how to do it (results do not depend on these)"
SERVING = ("concurrency", "vllm", "vllm_args", "timeout", "tries")
"""Options of commands that send requests to a model server and need no environment."""
_METAVARS = {int: "N", float: "X", Path: "DIR", dict: "NAME=VALUE"}


class _Pairs(argparse.Action):
    """Stores the repeated option `--workers babyai=2 --workers pddl=1` as a mapping."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        key, _, value = str(values).partition("=")
        if not key or not value:
            raise argparse.ArgumentError(self, f"{values!r} is not {self.metavar}")
        setattr(namespace, self.dest, {**(getattr(namespace, self.dest) or {}), key: value})


def add_run_options(
    parser: argparse.ArgumentParser,
    *,
    without: tuple[str, ...] = (),
    options: Mapping[str, FieldInfo] = OPTIONS,
) -> None:
    """Add a flag for every field of the configuration except `without`, and `--config`, `--data`, `--json`."""
    what, how = parser.add_argument_group(WHAT), parser.add_argument_group(HOW)
    for name, field in options.items():
        if name not in without and not option_of(field).no_flag:
            add_option(how if option_of(field).operational else what, name, field)
    add_config_option(how)
    add_data_option(how)
    add_json_option(how)


def add_config_option(parser: argparse._ActionsContainer) -> None:
    argument(parser, "--config FILE", "the same options as YAML; flags override it")


def run_options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Map each field to the flag that `add_run_options` made."""
    return {
        action.dest: action
        for group in parser._action_groups
        if group.title in (WHAT, HOW)
        for action in group._group_actions
        if action.dest in OPTIONS
    }


def add_option(
    parser: argparse._ActionsContainer, name: str, field: FieldInfo, *, default: Any = None
) -> None:
    """Add the flag of one field; `default` replaces the field's default in the help. If the user does not give the
    flag, its parsed value is None: the value then comes from the configuration file or from the field's default."""
    option, kind = option_of(field), _kind(field.annotation)
    names = [*([option.short] if option.short else []), "--" + name.replace("_", "-")]
    more: dict[str, Any]
    if kind is bool:
        more = {"action": "store_const", "const": not field.default}
        if field.default:
            names = ["--no-" + name.replace("_", "-")]
    elif get_origin(kind) is Literal:
        more = {"choices": get_args(kind)}
    else:
        item = _kind(get_args(kind)[0]) if get_origin(kind) in (list, tuple) else kind
        more = {"metavar": option.metavar or _METAVARS.get(get_origin(item) or item, "TEXT")}
        if get_origin(kind) is dict:
            more["action"] = _Pairs
        elif get_origin(kind) in (list, tuple) or option.repeated:
            more["action"] = "append"
        if item in (int, float) and not option.text:
            more["type"] = whole_number if item is int else number
    parser.add_argument(*names, dest=name, help=help_of(field, default).replace("%", "%%"), **more)


def _kind(annotation: Any) -> Any:
    """Return the type without None and annotations: `int` for `int | None`."""
    if get_origin(annotation) in (Union, types.UnionType):
        [annotation] = [kind for kind in get_args(annotation) if kind is not type(None)]
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def help_of(field: FieldInfo, own_default: Any = None) -> str:
    """Return the help of a field's flag: the first paragraph of the field's docstring, with the default."""
    text = " ".join((field.description or "").partition("\n\n")[0].split())
    default = field.get_default(call_default_factory=True) if own_default is None else own_default
    return text if field.is_required() else with_default(text, default)


def config_of(args: argparse.Namespace, *, usual: Mapping[str, Any] | None = None, **own: Any) -> RunConfig:
    """Make the configuration from the flags of `add_run_options`. `own`: options that the command sets itself. `usual`:
    the command's defaults; they replace the defaults of the fields and of a protocol."""
    from evalharness.models.served import UnreachableError, add_served_name

    flags = {key: value for key, value in vars(args).items() if key in OPTIONS}
    in_file = options_in(args.config)
    given = {key for key, value in flags.items() if value is not None} | in_file.keys()
    flags |= {key: value for key, value in (usual or {}).items() if key not in given}
    protocol = read_protocol_options({**in_file, **{k: v for k, v in (flags | own).items() if v is not None}})
    if "suite" not in {*in_file, *protocol} and not args.suite:
        flags["suite"] = choose_suite(args, data_folder(args))
    config = make_config(flags | own, args.config)
    for line in config.find_probable_mistakes():
        note(line)
    try:
        return replace(config, policy=add_served_name(config.policy))
    except UnreachableError:
        if (name := _read_stored_name(config.execution.output)) is None:
            raise
        return replace(config, policy=config.policy.model_copy(update={"model_name": name}))


def _read_stored_name(folder: Path | None) -> str | None:
    """Return the served name of the model of the run or study in `folder`; None if there is no single name."""
    from evalharness.records.store import MANIFEST, read_manifest
    from evalharness.runs.study_file import run_folders

    runs = [] if folder is None else [run for run in run_folders([folder]) if (run / MANIFEST).exists()]
    names = {read_manifest(run).identity.model.get("name") for run in runs}
    return names.pop() if len(names) == 1 else None


def add_model(parser: argparse.ArgumentParser, name: str, what: str) -> argparse._ActionsContainer:
    """Add `--model`, `--model-name`, `--api-key-env` and `--header`; if `name` is `judge`, add `--judge` and so on."""
    group = parser.add_argument_group(what)
    group.add_argument(
        f"--{name}",
        required=True,
        metavar="MODEL",
        help="a checkpoint directory or hub id (served by a vLLM started for it), http://host:port/v1 (any "
        "OpenAI-compatible server), or demo",
    )
    add_option(group, f"{name}_name", OPTIONS["model_name"])
    add_option(group, _key_option(name), OPTIONS["api_key_env"])
    add_option(group, _header_option(name), OPTIONS["header"])
    return group


def _key_option(name: str) -> str:
    """Return the option for the API key: `api_key_env` for the model, `judge_key_env` for a judge."""
    return "api_key_env" if name == "model" else f"{name}_key_env"


def _header_option(name: str) -> str:
    return "header" if name == "model" else f"{name}_header"


def add_options_of_run(group: argparse._ActionsContainer, names: Iterable[str], **defaults: Any) -> None:
    """Add some options of `run` to another command; `defaults` are that command's defaults, for the help."""
    for name in names:
        add_option(group, name, OPTIONS[name], default=defaults.get(name))


def policy_of(args: argparse.Namespace, name: str = "model", **own: Any) -> PolicyConfig:
    """Make the policy from `--NAME` and the serving options; the options in `own` override both. Raises UserError."""
    from evalharness.models.api_key import read_key

    flags = {"model": name, "model_name": f"{name}_name", "api_key_env": _key_option(name)}
    flags["header"] = _header_option(name)
    given = {key: getattr(args, flags.get(key, key), None) for key in PolicyConfig.model_fields}
    read_key("--" + flags["api_key_env"].replace("_", "-"), given["api_key_env"])
    return make_part(PolicyConfig, given | own)


def attempts_of(args: argparse.Namespace) -> int:
    at_least(1, tries=args.tries)
    return args.tries or int(OPTIONS["tries"].default)
