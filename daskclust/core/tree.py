"""The name that `daskclust.core.hierarchy` had up to now."""

from daskclust.core.hierarchy import *  # noqa: F403
from daskclust.core.hierarchy import __all__  # noqa: F401
