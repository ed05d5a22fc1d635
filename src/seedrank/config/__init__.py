"""Every option, once: name, type, default, unit, range and meaning.

The command line, the environment variables, the configuration file, the Python keyword arguments and ``run.json``
all use these names. Models are frozen; what is not listed here is refused.
"""

from seedrank.config.build import BuildOptions
from seedrank.config.model import make_options
from seedrank.config.score import ScoreOptions

__all__ = ["BuildOptions", "ScoreOptions", "make_options"]
