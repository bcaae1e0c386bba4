"""The parts of a run's configuration. Command-line flags and a YAML file (`--config`) set the same options."""

from evalharness.config.agent import AgentConfig
from evalharness.config.execution import ExecutionConfig
from evalharness.config.limits import LimitsConfig
from evalharness.config.option import ConfigPart, Option, make_part, option_of
from evalharness.config.policy import EXTERNAL, HUMAN, SCRIPTED, PolicyConfig, is_scripted
from evalharness.config.run import OPTIONS, RunConfig, make_config, options_in
from evalharness.config.selection import SelectionConfig
from evalharness.config.values import SAMPLING, endpoint_url

__all__ = [
    "EXTERNAL",
    "HUMAN",
    "OPTIONS",
    "SAMPLING",
    "SCRIPTED",
    "AgentConfig",
    "ConfigPart",
    "ExecutionConfig",
    "LimitsConfig",
    "Option",
    "PolicyConfig",
    "RunConfig",
    "SelectionConfig",
    "endpoint_url",
    "is_scripted",
    "make_config",
    "make_part",
    "option_of",
    "options_in",
]
