"""Write `config.yaml` of a run folder. It contains every option with its value; `--config RUN/config.yaml` reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from evalharness.base.settings import escape_variables
from evalharness.config.policy import PolicyConfig
from evalharness.config.values import SAMPLING

_HEAD = """\
# All options of this run, from flags, file, environment and defaults. To repeat the run in another folder:
#   evalharness run --config THIS_FILE -o DIR
"""
_JSON = ("chat_template_kwargs", "extra_body")


def format_config(options: Mapping[str, Any], policy: PolicyConfig) -> str:
    """Return the options as YAML, without the run's folder (`-o`), headers (they contain keys), and unset options."""
    data = dict(options)
    del data["output"], data["more_endpoints"], data["header"]
    if policy.more_endpoints:
        data["model"] = list(policy.endpoints)
    if policy.sampling == "model":  # omit unset options: the model's generation_config.json determines them
        data = {
            key: value for key, value in data.items() if key not in SAMPLING or key in policy.model_fields_set
        }
    for name in _JSON:
        data[name] = json.loads(data[name] or "{}")
    data["tasks"] = data["tasks"].split(",")
    if data["protocol"]:  # otherwise the agent of the protocol would replace the default agent
        data["agent"] = data["agent"] or data["action_interface"]
    texts = type(policy).model_fields  # outside this part an empty text has a meaning, as in `--system ""`
    stored = {
        key: escape_variables(value)
        for key, value in data.items()
        if value not in (None, {}, []) and not (value == "" and key in texts)
    }
    return _HEAD + yaml.safe_dump(stored, sort_keys=False, allow_unicode=True, width=100)
