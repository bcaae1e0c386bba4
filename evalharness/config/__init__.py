"""What a run is. Command-line flags and a YAML file (`--config`) say the same things."""

from evalharness.config.option import Option, option_of
from evalharness.config.reading import make_config
from evalharness.config.run import SCRIPTED, RunConfig
from evalharness.config.values import SAMPLING, endpoint_url

__all__ = ["SAMPLING", "SCRIPTED", "Option", "RunConfig", "endpoint_url", "make_config", "option_of"]
